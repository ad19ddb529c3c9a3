"""GAN with a lazy R1 penalty, path regularisation and an averaged generator."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class Mapping(nn.Module):
    def __init__(self, z=6, w=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(z, w), nn.LeakyReLU(0.2), nn.Linear(w, w))

    def forward(self, z):
        return self.net(z * (z.square().mean(1, keepdim=True) + 1e-8).rsqrt())


class Synthesis(nn.Module):
    def __init__(self, w=12, out=2):
        super().__init__()
        self.const = nn.Parameter(torch.randn(1, 24))
        self.style = nn.Linear(w, 24)
        self.fc1, self.fc2 = nn.Linear(24, 24), nn.Linear(24, out)
        self.noise_strength = nn.Parameter(torch.zeros(()))

    def forward(self, w):
        x = self.const * (1.0 + self.style(w))
        x = self.fc1(F.leaky_relu(x, 0.2))
        x = x + self.noise_strength * torch.randn_like(x)
        return self.fc2(F.leaky_relu(x, 0.2))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.mapping, self.synthesis = Mapping(), Synthesis()

    def forward(self, z):
        w = self.mapping(z)
        return self.synthesis(w), w


def toggle(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


def r1(critic, real, gamma):
    real = real.detach().requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
    return 0.5 * gamma * slope.square().sum(1).mean()


class PathRegulariser:
    def __init__(self, decay=0.05):
        self.mean, self.decay = torch.zeros(()), decay

    def __call__(self, image, w):
        noise = torch.randn_like(image) / image.shape[1] ** 0.5
        (jac,) = torch.autograd.grad((image * noise).sum(), w, create_graph=True)
        lengths = (jac.square().sum(1) + 1e-8).sqrt()
        self.mean = self.mean.lerp(lengths.mean().detach(), self.decay)
        return (lengths - self.mean).square().mean()


def main(steps=24, every_d=4, every_g=3, batch=32):
    torch.manual_seed(30)
    gen = Generator()
    ema = copy.deepcopy(gen).eval().requires_grad_(False)
    critic = nn.Sequential(nn.Linear(2, 32), nn.Softplus(), nn.Linear(32, 1))
    opt_g = torch.optim.Adam(gen.parameters(), lr=2e-3, betas=(0.0, 0.99))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.99))
    path = PathRegulariser()
    for step in range(steps):
        angle = 6.28 * torch.rand(batch, 1)
        real = torch.cat([angle.cos(), angle.sin()], dim=1)
        toggle(gen, False)
        toggle(critic, True)
        fake, _ = gen(torch.randn(batch, 6))
        loss_d = F.softplus(critic(fake)).mean() + F.softplus(-critic(real)).mean()
        opt_d.zero_grad()
        loss_d.backward()
        if step % every_d == 0:
            (every_d * r1(critic, real, 0.2)).backward()
        opt_d.step()

        toggle(gen, True)
        toggle(critic, False)
        fake, w = gen(torch.randn(batch, 6))
        loss_g = F.softplus(-critic(fake)).mean()
        if step % every_g == 0:
            loss_g = loss_g + every_g * 0.5 * path(fake, w)
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        with torch.no_grad():
            for slow, fast in zip(ema.parameters(), gen.parameters(), strict=True):
                slow.copy_(torch.lerp(fast, slow, 0.9))
        if step % 8 == 7:
            print(f"step {step + 1} d {loss_d.item():.4f} g {loss_g.item():.4f}")


if __name__ == "__main__":
    main()
