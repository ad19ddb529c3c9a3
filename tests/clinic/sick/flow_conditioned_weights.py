"""Surface pressure from positions, with weights that follow the flow conditions."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    n_points: int = 24
    n_conditions: int = 3
    hidden: int = 24
    rank: int = 4
    batch: int = 12
    steps: int = 20
    lr: float = 4e-3


class HyperNetwork(nn.Module):
    """Writes a low-rank correction of a layer's weights for each flow."""

    def __init__(self, n_conditions, n_in, n_out, rank, width=32):
        super().__init__()
        self.n_in, self.n_out, self.rank = n_in, n_out, rank
        self.trunk = nn.Sequential(nn.Linear(n_conditions, width), nn.SiLU())
        self.u_head = nn.Linear(width, n_out * rank)
        self.v_head = nn.Linear(width, n_in * rank)
        for head in (self.u_head, self.v_head):
            nn.init.zeros_(head.weight)  # <- GS205
            nn.init.zeros_(head.bias)  # <~ GS205

    def forward(self, conditions):
        h = self.trunk(conditions)
        u = self.u_head(h).view(-1, self.n_out, self.rank)
        v = self.v_head(h).view(-1, self.rank, self.n_in)
        return u @ v


class ConditionedLinear(nn.Module):
    def __init__(self, n_in, n_out, cfg):
        super().__init__()
        self.base = nn.Linear(n_in, n_out)
        self.hyper = HyperNetwork(cfg.n_conditions, n_in, n_out, cfg.rank)

    def forward(self, x, conditions):
        delta = self.hyper(conditions)
        return self.base(x) + torch.einsum("boi,bpi->bpo", delta, x)


class SurfaceModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encode = nn.Linear(2, cfg.hidden)
        self.refine = ConditionedLinear(cfg.hidden, cfg.hidden, cfg)
        self.decode = nn.Linear(cfg.hidden, 1)

    def forward(self, points, conditions):
        h = F.gelu(self.encode(points))
        h = h + F.gelu(self.refine(h, conditions))
        return self.decode(h).squeeze(-1)


def make_flows(cfg, generator):
    conditions = torch.rand(cfg.batch, cfg.n_conditions, generator=generator) * 2 - 1
    angle = 6.2832 * torch.rand(cfg.batch, cfg.n_points, generator=generator)
    points = torch.stack([torch.cos(angle), 0.3 * torch.sin(angle)], dim=-1)
    attack = conditions[:, :1]
    pressure = 1 - 4 * torch.sin(angle + attack).pow(2) * (1 + 0.5 * conditions[:, 1:2])
    return points, conditions, pressure


def main():
    cfg = Config()
    torch.manual_seed(42)
    generator = torch.Generator().manual_seed(43)
    model = SurfaceModel(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.steps)
    for step in range(cfg.steps):
        points, conditions, pressure = make_flows(cfg, generator)
        loss = F.l1_loss(model(points, conditions), pressure)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 5 == 0:
            print(f"step {step:2d} mae_surf_p {loss.item():.4f}")


if __name__ == "__main__":
    main()
