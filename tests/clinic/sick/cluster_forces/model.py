import torch
import torch.nn as nn


class PairEnergyNet(nn.Module):
    """Potential energy as a sum of learned pair terms."""

    def __init__(self, n_rbf=24, width=48, cutoff=3.0):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.5, cutoff, n_rbf))
        self.gamma = (n_rbf / cutoff) ** 2 * 0.5
        self.cutoff = cutoff
        self.net = nn.Sequential(
            nn.Linear(n_rbf, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, pos):
        n = pos.shape[1]
        i, j = torch.triu_indices(n, n, offset=1)
        dist = (pos[:, i] - pos[:, j]).pow(2).sum(-1).clamp(min=1e-8).sqrt()
        rbf = torch.exp(-self.gamma * (dist[..., None] - self.centers) ** 2)
        envelope = 0.5 * (torch.cos(torch.pi * dist / self.cutoff) + 1) * (dist < self.cutoff)
        return (self.net(rbf).squeeze(-1) * envelope).sum(dim=1)


def energy_and_forces(model, pos):
    pos = pos.detach().requires_grad_(True)
    energy = model(pos)
    forces = -torch.autograd.grad(energy.sum(), pos, create_graph=True)[0]
    return energy, forces
