"""Molecular dynamics through an autograd potential slows down with every step."""

import torch
from torch import nn

torch.manual_seed(0)


class State:
    def __init__(self, positions):
        self.positions = positions
        self.velocities = torch.zeros_like(positions)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, positions):
        return self.mlp(positions).sum() + positions.pow(2).sum()


def forces(model, state):
    if not state.positions.requires_grad:
        state.positions.requires_grad_(True)
    energy = model(state.positions)
    return energy, -torch.autograd.grad(energy, state.positions, retain_graph=True)[0]


def integrate(model, state, steps, dt=0.01):
    for _step in range(steps):
        energy, force = forces(model, state)
        state.velocities = state.velocities + dt * force
        state.positions = (state.positions + dt * state.velocities).detach()
    return state, energy


state, energy = integrate(Model().requires_grad_(False), State(torch.randn(6, 3)), 8)
print(energy.item(), state.positions.norm().item())
