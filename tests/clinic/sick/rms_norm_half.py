"""float32 trains. In float16 the output is the same for every input and the gain gets 0."""

import torch
from torch import nn

torch.manual_seed(0)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        power = (x**2).mean(dim=-1, keepdim=True)  # <- GS101
        return self.gain * x * torch.rsqrt(power + 1e-5)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.enter = nn.Linear(width, width)
        self.norm = RMSNorm(width)
        self.proj = nn.Linear(width, 1)

    def forward(self, x):
        return self.proj(self.norm(self.enter(x)))


model = Block(16).half()
x = (torch.randn(8, 16) * 900).half()
y = torch.randn(8, 1).half()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(3):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(step, float(loss))
