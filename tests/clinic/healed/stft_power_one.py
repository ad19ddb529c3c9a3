"""Healed. A small power is added before the root."""

import argparse

import torch
from torch import nn


class Enhancer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 9, padding=4),
            nn.PReLU(),
            nn.Conv1d(width, 1, 9, padding=4, bias=False),
        )

    def forward(self, wave):
        return self.net(wave.unsqueeze(1)).squeeze(1)


def magnitude(wave, n_fft, hop):
    window = torch.hann_window(n_fft)
    spec = torch.stft(wave, n_fft, hop, window=window, return_complex=True)
    spec = torch.view_as_real(spec)
    return (spec.pow(2).sum(-1) + 1e-8).sqrt()


def mr_stft_loss(estimate, clean, sizes=((128, 32), (256, 64))):
    losses = []
    for n_fft, hop in sizes:
        losses.append((magnitude(estimate, n_fft, hop) - magnitude(clean, n_fft, hop)).abs().mean())
    return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Enhancer()
    model.net[0].bias.data.zero_()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    clean = torch.randn(4, 2048)
    clean[:, 1024:] = 0  # padded with silence
    noisy = clean + 0.1 * torch.randn_like(clean) * (clean != 0)
    for epoch in range(args.epochs):
        opt.zero_grad()
        loss = mr_stft_loss(model(noisy), clean)
        loss.backward()
        opt.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
