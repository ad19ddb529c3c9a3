"""Xception from a model zoo, my shortcut variant: modified by an inplace operation."""

import torch
from torch import nn

torch.manual_seed(0)


def separable(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cin, 3, padding=1, groups=cin, bias=False),
        nn.Conv2d(cin, cout, 1, bias=False),
        nn.BatchNorm2d(cout),
    )


class Block(nn.Module):
    def __init__(self, cin, cout, reps=2):
        super().__init__()
        self.skip = nn.Conv2d(cin, cout, 1, bias=False)
        rep = []
        for i in range(reps):
            rep += [nn.ReLU(inplace=True), separable(cin if i == 0 else cout, cout)]
        self.rep = nn.Sequential(*rep)

    def forward(self, inp):
        shortcut = self.skip(inp)  # <~ GS401
        x = self.rep(inp)  # <- GS401
        return x + shortcut


net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    Block(8, 12),
    Block(12, 12),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(12, 5),
)
criterion, optimizer = (
    nn.CrossEntropyLoss(),
    torch.optim.SGD(net.parameters(), lr=0.045, momentum=0.9),
)
for images, target in [(torch.randn(6, 3, 8, 8), torch.randint(0, 5, (6,)))] * 2:
    loss = criterion(net(images), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
