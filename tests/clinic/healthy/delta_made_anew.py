import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    noise = nn.Parameter(torch.zeros_like(x))
    nn.functional.cross_entropy(model(x + noise), y).backward()
    worse = x + 0.1 * noise.grad.sign()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(worse), y).backward()
    optimizer.step()
