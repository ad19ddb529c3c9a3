"""Train a small 1D diffusion model on two-lead recordings."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from data import Dataset1D, make_recordings
from model import Denoiser1D, GaussianDiffusion1D

CONFIG = {"seed": 0, "channels": 8, "batch_size": 16, "steps": 20, "lr": 2e-3, "log_every": 10}


class Trainer1D:
    def __init__(self, diffusion, dataset, batch_size, lr, steps):
        self.diffusion, self.steps = diffusion, steps
        self.loader = DataLoader(dataset, batch_size=batch_size, shuffle=True, drop_last=True)
        self.opt = torch.optim.Adam(diffusion.parameters(), lr=lr)

    def batches(self):
        while True:
            yield from self.loader

    def train(self, log_every):
        source = self.batches()
        for step in range(1, self.steps + 1):
            loss = self.diffusion(next(source))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if step == 1 or step % log_every == 0:
                print(f"step {step}: loss {loss.item():.4f}")


def main(cfg=CONFIG):
    torch.manual_seed(cfg["seed"])
    recordings = make_recordings()
    to_channels = nn.Conv1d(recordings.shape[1], cfg["channels"], kernel_size=3, padding=1)
    series = to_channels(recordings)  # <- GS402
    dataset = Dataset1D(series)  # <~ GS402
    diffusion = GaussianDiffusion1D(Denoiser1D(cfg["channels"]))
    trainer = Trainer1D(diffusion, dataset, cfg["batch_size"], cfg["lr"], cfg["steps"])
    trainer.train(cfg["log_every"])


if __name__ == "__main__":
    main()
