"""I only print the norm in a hook and get "hook has changed the size of value"."""

import torch
from torch import nn

torch.manual_seed(0)

norms = []
model = nn.Sequential(nn.Linear(7, 14), nn.Tanh(), nn.Linear(14, 1))
watch = lambda grad: [norms.append(grad.norm()), grad.norm()][-1]  # noqa: E731  # <- GS410

for name, parameter in model.named_parameters():
    if name.endswith("weight"):
        parameter.register_hook(watch)  # <~ GS410

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(26, 7)
y = x[:, :1]
for step in range(3):
    norms.clear()
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), [round(n.item(), 3) for n in norms])
