"""Meta-learning: the outer loss is taken after one differentiable inner step."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)

weights = {
    "w1": (torch.randn(16, 1) * 0.5).requires_grad_(),
    "b1": torch.zeros(16, requires_grad=True),
    "w2": (torch.randn(1, 16) * 0.25).requires_grad_(),
    "b2": torch.zeros(1, requires_grad=True),
}
optimizer = torch.optim.Adam(weights.values(), lr=1e-2)


def net(p, x):
    return F.linear(torch.tanh(F.linear(x, p["w1"], p["b1"])), p["w2"], p["b2"])


def adapt(p, x, y, rate=0.1):
    loss = F.mse_loss(net(p, x), y)
    slopes = torch.autograd.grad(loss, list(p.values()), create_graph=True)
    return {name: w - rate * g for (name, w), g in zip(p.items(), slopes, strict=True)}


for step in range(4):
    outer = 0.0
    for _task in range(3):
        phase = torch.rand(1) * 3
        x = torch.rand(20, 1) * 6 - 3
        y = torch.sin(x + phase)
        fast = adapt(weights, x[:10], y[:10])
        outer = outer + F.mse_loss(net(fast, x[10:]), y[10:])
    optimizer.zero_grad()
    outer.backward()
    optimizer.step()
    print(f"step {step} loss {outer.item():.4f}")
