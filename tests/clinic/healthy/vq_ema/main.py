"""VQ autoencoder for short waveforms."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from quantizer import EMAQuantizer

CONFIG = {
    "seed": 6,
    "dim": 8,
    "codes": 24,
    "batch_size": 24,
    "steps": 40,
    "lr": 4e-3,
    "log_every": 10,
}


class VQAutoencoder(nn.Module):
    def __init__(self, dim, codes):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv1d(16, dim, 4, stride=2, padding=1),
        )
        self.quantizer = EMAQuantizer(codes, dim)
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(dim, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose1d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        q, commit, perplexity = self.quantizer(self.encoder(x))
        return self.decoder(q), commit, perplexity


def waves(n, gen, length=64):
    t = torch.linspace(0, 6.28, length)
    f = torch.randint(1, 4, (n, 1, 1), generator=gen).float()
    phase = 6.28 * torch.rand(n, 1, 1, generator=gen)
    return torch.sin(f * t + phase) + 0.3 * torch.sign(torch.sin(2 * f * t))


def main(cfg=CONFIG):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    model = VQAutoencoder(cfg["dim"], cfg["codes"])
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    for step in range(1, cfg["steps"] + 1):
        x = waves(cfg["batch_size"], gen)
        recon, commit, perplexity = model(x)
        loss = F.mse_loss(recon, x) + commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % cfg["log_every"] == 0:
            print(
                f"step {step:4d}  loss {loss.item():.4f}  commit {commit.item():.4f}  "
                f"ppl {perplexity.item():.1f}"
            )


if __name__ == "__main__":
    main()
