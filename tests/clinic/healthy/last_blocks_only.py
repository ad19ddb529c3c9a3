import torch
from torch import nn

torch.manual_seed(0)
blocks = nn.ModuleList(nn.Linear(6, 6) for _ in range(5))
head = nn.Linear(6, 1)
optimizer = torch.optim.SGD([*blocks[-2:].parameters(), *head.parameters()], lr=0.05)
for _ in range(4):
    x = torch.randn(8, 6)
    hidden = x
    for block in blocks:
        hidden = torch.tanh(block(hidden))
    optimizer.zero_grad()
    nn.functional.mse_loss(head(hidden), x.sum(1, keepdim=True)).backward()
    optimizer.step()
