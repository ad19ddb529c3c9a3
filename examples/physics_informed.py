"""A physics-informed loss: the network is trained on a derivative of its own output.

The equation is u'(t) = -u(t) with u(0) = 1, whose solution is exp(-t). du/dt comes from a backward
pass with create_graph=True, so the loss has a graph in which some nodes were made by that pass:
they are marked, and named after the line of the network that they are the derivative of.

Try:
    gradscope backward examples/physics_informed.py --call 2
    gradscope explain examples/physics_informed.py --call 2 --leaf 0.weight
    python examples/physics_informed.py --steps 500
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser(description="train a small network to solve u' = -u, u(0) = 1")
parser.add_argument("--steps", type=int, default=1)
steps = parser.parse_args().steps

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
t = torch.linspace(0, 2, 16).unsqueeze(1).requires_grad_()

for _ in range(steps):
    u = network(t)
    du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    equation = (du + u).square().mean()
    start = (network(torch.zeros(1, 1)) - 1).square().mean()
    loss = equation + start
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print(f"loss {loss.item():.6f}  u(1) = {network(torch.ones(1, 1)).item():.4f}, exp(-1) = 0.3679")
