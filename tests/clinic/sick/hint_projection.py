"""A student imitates the features of a teacher. The hint term falls at first and then stays."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, width, classes=4):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(2, width, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        maps = self.features(x)
        return self.head(maps.mean(2)), maps


class HintLoss(nn.Module):
    """The student has fewer channels, so its maps are projected first."""

    def __init__(self, student, teacher):
        super().__init__()
        self.project = nn.Conv1d(student, teacher, 1)

    def forward(self, maps, hints):
        return F.mse_loss(self.project(maps), hints)


class Distiller:
    def __init__(self, student, teacher):
        self.student, self.teacher = student, teacher.requires_grad_(False)
        self.hint = HintLoss(student.head.in_features, teacher.head.in_features)
        self.optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)  # <- GS307

    def step(self, x, y):
        logits, maps = self.student(x)
        loss = F.cross_entropy(logits, y) + 2.0 * self.hint(maps, self.teacher(x)[1])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


distiller = Distiller(Net(6), Net(12))
for step in range(6):
    y = torch.randint(4, (16,))
    x = torch.randn(16, 2, 24) + y[:, None, None]
    print(f"step {step} loss {distiller.step(x, y):.4f}")
