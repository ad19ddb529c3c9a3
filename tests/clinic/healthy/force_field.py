"""Energies and forces with create_graph, evaluation without, losses in a list each step."""

import torch
from torch import nn

torch.manual_seed(0)


class ForceField(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, pos, training):
        pos = pos.detach().requires_grad_(True)
        energy = self.mlp(pos).squeeze(-1).sum(1)
        (gradient,) = torch.autograd.grad(energy.sum(), pos, create_graph=training)
        return energy if training else energy.detach(), -gradient


def evaluate(model, data):
    model.eval()
    errors = [(model(p, False)[1] - f).abs().mean().item() for p, _, f in data]
    model.train()
    return sum(errors) / len(errors)


model = ForceField()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = [(torch.randn(4, 5, 3), torch.randn(4), torch.randn(4, 5, 3)) for _ in range(3)]
history = []
for epoch in range(2):
    for pos, energy, force in data:
        e, f = model(pos, True)
        losses = [nn.functional.mse_loss(e, energy), 10 * nn.functional.mse_loss(f, force)]
        losses.append(1e-3 * sum(p.pow(2).sum() for p in model.parameters()))
        opt.zero_grad()
        sum(losses).backward()
        opt.step()
        history.append([part.item() for part in losses])
    print(epoch, evaluate(model, data), history[-1])
