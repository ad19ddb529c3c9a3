"""Train a small neural vocoder on synthetic tones."""

import torch
from train import Trainer


def synth_clips(count=32, length=1024, sample_rate=8000):
    t = torch.arange(length) / sample_rate
    pitch = 120.0 + 400.0 * torch.rand(count, 1)
    tone = torch.sin(2 * torch.pi * pitch * t)
    overtone = 0.3 * torch.sin(4 * torch.pi * pitch * t)
    return 0.5 * (tone + overtone) + 0.01 * torch.randn(count, length)


if __name__ == "__main__":
    torch.manual_seed(1234)
    Trainer().fit(synth_clips())
