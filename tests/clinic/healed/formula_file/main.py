"""Healed. The formula keeps b as a tensor."""

from pathlib import Path

import torch

torch.manual_seed(0)


def load(path):
    namespace = {"torch": torch}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    return namespace["formula"]


formula = load(Path(__file__).with_name("formula.py"))
parameters = {
    "a": torch.tensor(0.5, requires_grad=True),
    "b": torch.tensor(1.5, requires_grad=True),
    "c": torch.tensor(0.0, requires_grad=True),
}
optimizer = torch.optim.Adam(parameters.values(), lr=0.05)

x = torch.linspace(0, 2, 40)
y = 2 * torch.exp(-1.3 * x) + 0.4
for step in range(4):
    loss = (formula(x, **parameters) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.5f}")
