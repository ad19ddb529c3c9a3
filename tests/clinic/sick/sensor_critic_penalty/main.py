import torch
from wgan import WGAN_GP


def signals(n, length=16):
    t = torch.arange(length) / length
    phase = 6.2832 * torch.rand(n, 1)
    speed = 1 + torch.randint(0, 2, (n, 1))
    angle = 6.2832 * speed * t + phase
    return torch.stack([torch.sin(angle), torch.cos(angle), 0.5 * torch.sin(2 * angle)], dim=1)


def steepness(critic, x):
    x = x.clone().requires_grad_(True)
    slope = torch.autograd.grad(critic(x).sum(), x)[0]
    return slope.flatten(1).norm(dim=1).mean().item()


def main():
    torch.manual_seed(25)
    gan = WGAN_GP()
    gan.train(signals(36) for _ in range(9))
    print(f"slope of the critic {steepness(gan.critic, signals(32)):.3f}")


if __name__ == "__main__":
    main()
