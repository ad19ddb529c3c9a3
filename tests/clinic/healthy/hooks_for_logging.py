"""Hooks that record norms and change nothing; an activation keeps its gradient."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(6, 18), nn.Tanh(), nn.Linear(18, 2))
norms = {}


def recorder(name):
    def record(grad):
        norms[name] = grad.norm().item()

    return record


def watch_layer(_module, _grad_input, grad_output):
    norms["layer"] = grad_output[0].norm().item()


for name, parameter in model.named_parameters():
    parameter.register_hook(recorder(name))
model[0].register_full_backward_hook(watch_layer)

optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(30, 6), torch.randint(0, 2, (30,))
for step in range(4):
    hidden = model[1](model[0](x))
    hidden.retain_grad()
    loss = nn.functional.cross_entropy(model[2](hidden), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), len(norms), tuple(hidden.grad.shape))
