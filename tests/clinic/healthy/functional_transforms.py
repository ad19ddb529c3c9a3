"""Per-sample gradients with torch.func, averaged by hand into a step."""

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 1))
x, y = torch.randn(32, 5), torch.randn(32, 1)


def sample_loss(parameters, xi, yi):
    prediction = functional_call(model, parameters, (xi[None],))
    return nn.functional.mse_loss(prediction, yi[None])


optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(4):
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    each = vmap(grad(sample_loss), in_dims=(None, 0, 0))(parameters, x, y)
    largest = max(g.flatten(1).norm(dim=1).max().item() for g in each.values())
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f} largest sample gradient {largest:.3f}")
