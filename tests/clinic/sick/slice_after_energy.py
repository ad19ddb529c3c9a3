"""Forces of each structure in a batch: differentiate the energy by a slice of the descriptors."""

import torch
from torch import nn
from torch.autograd import grad

torch.manual_seed(0)


class AtomicNet(nn.Module):
    def __init__(self, n=5):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def structure_forces(model, x, sizes):
    atomic_energies = model(x)
    start, forces = 0, []
    for size in sizes:
        energy = atomic_energies[start : start + size].sum()
        dedx = grad(energy, x[start : start + size, :], create_graph=True)[0]  # <- GS306
        forces.append(-dedx)
        start += size
    return atomic_energies, forces


model = AtomicNet()
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
x = torch.randn(5, 5, requires_grad=True)


def closure():
    optimizer.zero_grad()
    energies, forces = structure_forces(model, x, [3, 2])
    loss = energies.sum().pow(2) + sum(f.pow(2).mean() for f in forces)
    loss.backward()
    return loss


optimizer.step(closure)
