"""Fit a potential to forces only: "element 0 of tensors does not require grad"."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    hidden: int = 16
    lr: float = 1e-3
    epochs: int = 2


class Potential(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(1, cfg.hidden), nn.SiLU(), nn.Linear(cfg.hidden, 1))

    def energy(self, pos):
        difference = pos[:, :, None] - pos[:, None]
        off = ~torch.eye(pos.shape[1], dtype=torch.bool)
        distance2 = difference.pow(2).sum(-1)[:, off]
        return self.mlp(distance2.unsqueeze(-1)).sum(dim=(1, 2))

    def forward(self, pos):
        pos = pos.requires_grad_(True)
        energy = self.energy(pos)
        forces = -torch.autograd.grad(
            energy.sum(),
            pos,
            create_graph=True,
        )[0]
        return {"energy": energy, "forces": forces}


def main():
    cfg = Config()
    torch.manual_seed(0)
    model = Potential(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    pos, target = torch.randn(10, 4, 3), torch.randn(10, 4, 3)
    for epoch in range(cfg.epochs):
        out = model(pos.clone())
        loss = nn.functional.mse_loss(out["forces"], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


main()
