"""A GAN on a ring of Gaussians; both players accumulate gradients over micro-batches."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

CONFIG = {
    "latent": 4,
    "hidden": 32,
    "batch": 64,
    "micro": 2,
    "steps": 40,
    "lr_d": 1e-2,
    "lr_g": 5e-3,
}


class Generator(nn.Module):
    def __init__(self, latent, hidden):
        super().__init__()
        self.net = nn.Sequential(
            weight_norm(nn.Linear(latent, hidden)),
            nn.ReLU(),
            weight_norm(nn.Linear(hidden, hidden)),
            nn.ReLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(
            spectral_norm(nn.Linear(2, hidden)),
            nn.LeakyReLU(0.2),
            spectral_norm(nn.Linear(hidden, hidden)),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def real_batch(n):
    angle = torch.randint(0, 6, (n,)) * (2 * math.pi / 6)
    centres = torch.stack([1.5 + angle.cos(), angle.sin() - 1.0], dim=1)
    return centres + 0.05 * torch.randn(n, 2)


class GANTrainer:
    def __init__(self, config):
        self.config = config
        self.generator = Generator(config["latent"], config["hidden"])
        self.discriminator = Discriminator(config["hidden"])
        self.opt_g = torch.optim.Adam(
            self.generator.parameters(), lr=config["lr_g"], betas=(0.0, 0.9)
        )
        self.opt_d = torch.optim.Adam(
            self.discriminator.parameters(), lr=config["lr_d"], betas=(0.0, 0.9)
        )

    def noise(self, n):
        return torch.randn(n, self.config["latent"])

    def discriminator_step(self):
        micro = self.config["micro"]
        size = self.config["batch"] // micro
        self.opt_d.zero_grad(set_to_none=False)
        total = 0.0
        for _ in range(micro):
            fake = self.generator(self.noise(size))
            real_logit = self.discriminator(real_batch(size))
            fake_logit = self.discriminator(fake.detach())
            loss = F.softplus(-real_logit).mean() + F.softplus(fake_logit).mean()
            (loss / micro).backward()
            total += loss.item() / micro
        self.opt_d.step()
        return total

    def generator_step(self):
        micro = self.config["micro"]
        size = self.config["batch"] // micro
        self.opt_g.zero_grad(set_to_none=False)
        total = 0.0
        for _ in range(micro):
            loss = F.softplus(-self.discriminator(self.generator(self.noise(size)))).mean()
            (loss / micro).backward()
            total += loss.item() / micro
        self.opt_g.step()
        return total


def main():
    torch.manual_seed(0)
    trainer = GANTrainer(CONFIG)
    target = real_batch(500).mean(dim=0)
    for step in range(CONFIG["steps"]):
        loss_d = trainer.discriminator_step()
        loss_g = trainer.generator_step()
        if step % 13 == 0:
            with torch.no_grad():
                fake = trainer.generator(trainer.noise(200))
            distance = (fake.mean(dim=0) - target).norm().item()
            print(f"step {step} D {loss_d:.3f} G {loss_g:.3f} distance of means {distance:.2f}")


if __name__ == "__main__":
    main()
