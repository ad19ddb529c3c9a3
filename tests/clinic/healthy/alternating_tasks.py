"""Two tasks in turn: the head of the other task gets no gradient in this step."""

import torch
from torch import nn

torch.manual_seed(0)

trunk = nn.Sequential(nn.Linear(6, 20), nn.Tanh())
heads = nn.ModuleDict({"kind": nn.Linear(20, 3), "size": nn.Linear(20, 1)})
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=5e-3)
x = torch.randn(40, 6)
targets = {"kind": torch.randint(0, 3, (40,)), "size": x[:, :1].abs()}
criteria = {"kind": nn.functional.cross_entropy, "size": nn.functional.mse_loss}

for step in range(6):
    task = ["kind", "size"][step % 2]
    loss = criteria[task](heads[task](trunk(x)), targets[task])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} {task} loss {loss.item():.4f}")
