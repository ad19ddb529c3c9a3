"""ReLU6, hard swish and hard sigmoid, residual branches that start at zero."""

import torch
from torch import nn


class InvertedResidual(nn.Module):
    def __init__(self, c, e):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(c, e, 1, bias=False),
            nn.BatchNorm2d(e),
            nn.Hardswish(),
            nn.Conv2d(e, e, 3, 1, 1, groups=e, bias=False),
            nn.BatchNorm2d(e),
            nn.ReLU6(),
            SqueezeExcite(e),
            nn.Conv2d(e, c, 1, bias=False),
            nn.BatchNorm2d(c),
        )
        nn.init.zeros_(self.conv[-1].weight)

    def forward(self, x):
        return x + self.conv(x)


class SqueezeExcite(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.fc = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(c, c // 4, 1),
            nn.ReLU(),
            nn.Conv2d(c // 4, c, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x):
        return x * self.fc(x)


torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 16, 3, 2, 1, bias=False),
    nn.BatchNorm2d(16),
    nn.Hardswish(),
    *[InvertedResidual(16, 32) for _ in range(2)],
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(16, 10),
)
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.9)
for _ in range(4):
    x, y = torch.randn(16, 3, 8, 8), torch.randint(0, 10, (16,))
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
