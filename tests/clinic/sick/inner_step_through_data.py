import torch
from torch import nn

INNER_RATE = 0.1


def inner_update(model, loss):
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    before = [parameter.data.clone() for parameter in model.parameters()]
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.data = parameter.data - INNER_RATE * gradient  # <- GS303
    return before


def restore(model, before):
    for parameter, value in zip(model.parameters(), before, strict=True):
        parameter.data.copy_(value)


def sample(amplitude, count=12):
    x = torch.linspace(-2, 2, count).unsqueeze(1) + 0.1 * torch.randn(count, 1)
    return x, amplitude * torch.tanh(x)


torch.manual_seed(1)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
meta_optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _iteration in range(4):
    meta_optimizer.zero_grad()
    for amplitude in (0.5, 1.5):
        x, y = sample(amplitude)
        before = inner_update(model, nn.functional.mse_loss(model(x), y))
        x, y = sample(amplitude)
        outer = nn.functional.mse_loss(model(x), y)
        outer.backward()
        restore(model, before)
    meta_optimizer.step()
