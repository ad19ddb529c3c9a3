"""Two networks trained in turn, forward, backward and step all in a region of autocast that is left
after each batch."""

import torch
import torch.nn.functional as F
from torch import nn


def networks():
    generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
    critic = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    return generator, critic


def main(batches=12):
    torch.manual_seed(21)
    generator, critic = networks()
    optimizers = [
        torch.optim.Adam(net.parameters(), lr=lr, betas=(0.5, 0.99))
        for net, lr in ((generator, 1e-3), (critic, 2e-3))
    ]
    for batch in range(batches):
        real, noise = torch.randn(24, 16) * 0.5 + 1.0, torch.randn(24, 8)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            fake = generator(noise)
            critic_loss = F.softplus(critic(fake.detach())) + F.softplus(-critic(real))
            optimizers[1].zero_grad()
            critic_loss.float().mean().backward()
            optimizers[1].step()
            # The critic is that of before its step in what follows: the generator's alone counts.
            loss = F.softplus(-critic(generator(noise))).float().mean()
            optimizers[0].zero_grad()
            loss.backward()
            optimizers[0].step()
        if batch % 4 == 3:
            print(f"{batch} critic {critic_loss.float().mean().item():.4f} {loss.item():.4f}")


if __name__ == "__main__":
    main()
