"""Mean teacher: the student follows its own moving average on unlabelled data."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

student = nn.Sequential(nn.Linear(10, 24), nn.GELU(), nn.Linear(24, 3))
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)


@torch.no_grad()
def follow(decay=0.95):
    for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
        slow.mul_(decay).add_(fast, alpha=1 - decay)


x, y = torch.randn(24, 10), torch.randint(0, 3, (24,))
unlabelled = torch.randn(48, 10)
for step in range(5):
    target = teacher(unlabelled + 0.05 * torch.randn_like(unlabelled)).softmax(dim=1).detach()
    guess = student(unlabelled).log_softmax(dim=1)
    loss = F.cross_entropy(student(x), y) + F.kl_div(guess, target, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    follow()
    print(step, loss.item())
