"""Knowledge transfer in stages: the hint loss goes up and down, and the small net ignores it."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU())
        self.stages = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        x = self.stem(x)
        hints = []
        for stage in self.stages:
            x = x + torch.relu(stage(x))
            hints.append(x.mean((2, 3)))
        return self.head(hints[-1]), hints


def hint_loss(hints, targets):
    total = 0.0
    for hint, target in zip(hints, targets, strict=True):
        total = total + F.smooth_l1_loss(hint, target)  # <- GS316
    return total


large, small = Net(8).eval(), Net(8)
large.requires_grad_(False)
patterns = torch.randn(4, 1, 6, 6)
optimizer = torch.optim.Adam(small.parameters(), lr=3e-3)
for step in range(8):
    label = torch.randint(4, (16,))
    x = patterns[label] + 0.5 * torch.randn(16, 1, 6, 6)
    _, targets = large(x)
    logits, hints = small(x)
    _, hints = large(x + 0.1 * torch.randn_like(x))
    hint = hint_loss(hints, targets)
    loss = F.cross_entropy(logits, label) + 2.0 * hint
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), hint.item())
