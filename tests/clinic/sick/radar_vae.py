"""Train a convolutional VAE on radar frames with micro batches."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class TrainConfig:
    micro_batch: int = 4
    accumulate: int = 4
    updates: int = 8
    lr: float = 2e-3
    kl_weight: float = 1e-3
    clip: float = 1.0


class FrameVAE(nn.Module):
    def __init__(self, width=12, latent=4):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, 2 * latent, 3, stride=2, padding=1),
        )
        self.dec = nn.Sequential(
            nn.ConvTranspose2d(latent, width, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        )

    def forward(self, frames):
        mean, log_var = self.enc(frames).chunk(2, dim=1)
        log_var = log_var.clamp(-10.0, 10.0)
        z = mean + (0.5 * log_var).exp() * torch.randn_like(mean)
        kl = 0.5 * (mean.square() + log_var.exp() - 1.0 - log_var).flatten(1).sum(1).mean()
        return self.dec(z), kl


def radar_frames(count, size=16):
    grid = torch.linspace(0.0, 1.0, size)
    cx, cy = torch.rand(2, count, 1, 1)
    field = torch.exp(-20 * ((grid.view(1, 1, -1) - cx) ** 2 + (grid.view(1, -1, 1) - cy) ** 2))
    return field.unsqueeze(1)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = FrameVAE()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, cfg.updates)
        self.global_step = 0

    def micro_step(self, index, frames):
        recon, kl = self.model(frames)
        rec_loss = F.l1_loss(recon, frames)
        loss = (rec_loss + self.cfg.kl_weight * kl) / self.cfg.accumulate
        loss.backward()
        if (index + 1) % self.cfg.accumulate == 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
            self.optimizer.step()
            self.scheduler.step()
            self.global_step += 1
        self.optimizer.zero_grad()  # <- GS505
        return rec_loss.item()

    def fit(self, frames):
        running = []
        for index in range(self.cfg.updates * self.cfg.accumulate):
            pick = torch.randint(0, len(frames), (self.cfg.micro_batch,))
            running.append(self.micro_step(index, frames[pick]))
            if (index + 1) % (2 * self.cfg.accumulate) == 0:
                print(f"update {self.global_step} rec {sum(running) / len(running):.4f}")
                running.clear()


if __name__ == "__main__":
    torch.manual_seed(23)
    Trainer(TrainConfig()).fit(radar_frames(128))
