"""Residual vector quantisation: codebooks follow moving averages, dead codes are restarted."""

import torch
import torch.nn.functional as F
from torch import nn


class EMACodebook(nn.Module):
    def __init__(self, size, dim, decay=0.8):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(size, dim))
        self.register_buffer("counts", torch.ones(size))
        self.register_buffer("sums", self.codes.clone())

    def lookup(self, z):
        return torch.cdist(z, self.codes).argmin(dim=1)

    @torch.no_grad()
    def update(self, z, index):
        chosen = F.one_hot(index, len(self.codes)).to(z.dtype)
        self.counts.mul_(self.decay).add_(chosen.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(chosen.T @ z, alpha=1 - self.decay)
        self.codes.copy_(self.sums / self.counts.clamp_min(1e-3).unsqueeze(1))

    @torch.no_grad()
    def restart_dead(self, z, below=0.05):
        dead = self.counts < below
        picks = torch.randint(0, len(z), (int(dead.sum()),))
        self.codes[dead] = z[picks]
        self.sums[dead] = z[picks]
        self.counts[dead] = 1.0
        return int(dead.sum())


class ResidualQuantizer(nn.Module):
    def __init__(self, levels=2, size=16, dim=6):
        super().__init__()
        self.levels = nn.ModuleList(EMACodebook(size, dim) for _ in range(levels))
        self.last_inputs = [None] * levels

    def forward(self, z):
        residual, quantised = z.detach(), torch.zeros_like(z)
        for i, level in enumerate(self.levels):
            index = level.lookup(residual)
            self.last_inputs[i] = residual
            if self.training:
                level.update(residual, index)
            codes = level.codes[index]
            quantised = quantised + codes
            residual = residual - codes
        commitment = F.mse_loss(z, quantised.detach())
        return z + (quantised - z).detach(), commitment

    def restart_dead(self):
        return [
            level.restart_dead(z) for level, z in zip(self.levels, self.last_inputs, strict=True)
        ]


class RVQAutoencoder(nn.Module):
    def __init__(self, n_in=16, hidden=32, dim=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n_in, hidden), nn.SiLU(), nn.Linear(hidden, dim))
        self.quantizer = ResidualQuantizer(dim=dim)
        self.decoder = nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, n_in))

    def forward(self, x):
        quantised, commitment = self.quantizer(self.encoder(x))
        return self.decoder(quantised), commitment


def main():
    torch.manual_seed(0)
    factors = torch.randn(3, 16)
    data = torch.tanh(torch.randn(400, 3) @ factors) + 0.05 * torch.randn(400, 16)
    train, held_out = data[:320], data[320:]
    model = RVQAutoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    metrics = {"reconstruction": [], "commitment": []}
    for epoch in range(5):
        model.train()
        for ids in torch.randperm(len(train)).split(40):
            output, commitment = model(train[ids])
            reconstruction = F.mse_loss(output, train[ids])
            loss = reconstruction + 0.25 * commitment
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            metrics["reconstruction"].append(reconstruction.detach())
            metrics["commitment"].append(commitment.detach())
        restarted = model.quantizer.restart_dead()
        model.eval()
        with torch.no_grad():
            validation = F.mse_loss(model(held_out)[0], held_out).item()
        means = {name: torch.stack(values[-8:]).mean().item() for name, values in metrics.items()}
        print(
            f"epoch {epoch} recon {means['reconstruction']:.3f} "
            f"commit {means['commitment']:.3f} val {validation:.3f} restarted {restarted}"
        )


if __name__ == "__main__":
    main()
