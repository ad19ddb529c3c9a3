"""Healed. The losses are added and walked once."""

import torch
from torch import nn

torch.manual_seed(0)


def build():
    trunk = nn.Sequential(nn.Linear(6, 16), nn.Tanh())
    return nn.ModuleDict({"trunk": trunk, "age": nn.Linear(16, 1), "sex": nn.Linear(16, 2)})


def losses(model, batch):
    shared = model["trunk"](batch["x"])
    yield nn.functional.mse_loss(model["age"](shared), batch["age"])
    yield nn.functional.cross_entropy(model["sex"](shared), batch["sex"])


batch = {
    "x": torch.randn(20, 6),
    "age": torch.rand(20, 1),
    "sex": torch.randint(0, 2, (20,)),
}
model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    parts = list(losses(model, batch))
    sum(parts).backward()
    optimizer.step()
    print(step, [round(part.item(), 4) for part in parts])
