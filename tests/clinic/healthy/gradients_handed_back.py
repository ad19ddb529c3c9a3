import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    optimizer.zero_grad()
    for _task in range(2):
        task = copy.deepcopy(model)
        x, y = torch.randn(8, 2), torch.randn(8, 1)
        for _inner in range(2):
            loss = nn.functional.mse_loss(task(x), y)
            gradients = torch.autograd.grad(loss, task.parameters())
            for parameter, gradient in zip(task.parameters(), gradients, strict=True):
                parameter.data -= 0.1 * gradient
        nn.functional.mse_loss(task(x), y).backward()
        for parameter, copied in zip(model.parameters(), task.parameters(), strict=True):
            old = 0.0 if parameter.grad is None else parameter.grad
            parameter.grad = old + copied.grad
    optimizer.step()
