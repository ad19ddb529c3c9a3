"""Self-distillation without labels; the last layer is kept still during the first epoch."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class Head(nn.Module):
    def __init__(self, width, bottleneck, prototypes):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, bottleneck))
        self.last_layer = nn.utils.parametrizations.weight_norm(
            nn.Linear(bottleneck, prototypes, bias=False)
        )
        self.last_layer.parametrizations.weight.original0.data.fill_(1.0)
        self.last_layer.parametrizations.weight.original0.requires_grad_(False)

    def forward(self, x):
        return self.last_layer(F.normalize(self.mlp(x), dim=-1))


class DistillationLoss(nn.Module):
    def __init__(self, prototypes, student_temp=0.1, teacher_temp=0.04, momentum=0.9):
        super().__init__()
        self.student_temp, self.teacher_temp = student_temp, teacher_temp
        self.momentum = momentum
        self.register_buffer("center", torch.zeros(1, prototypes))

    def forward(self, student, teacher):
        views = student.chunk(2)
        targets = F.softmax((teacher - self.center) / self.teacher_temp, dim=-1).detach().chunk(2)
        loss = 0.0
        for i, target in enumerate(targets):
            log_probs = F.log_softmax(views[1 - i] / self.student_temp, dim=-1)
            loss = loss - (target * log_probs).sum(-1).mean()
        self.update_center(teacher)
        return loss / 2

    @torch.no_grad()
    def update_center(self, teacher):
        mean = teacher.mean(0, keepdim=True)
        self.center = self.center * self.momentum + mean * (1 - self.momentum)


def cancel_gradients_last_layer(epoch, model, freeze):
    if epoch >= freeze:
        return
    for name, p in model.named_parameters():
        if "last_layer" in name:
            p.grad = None


def two_views(x):
    return torch.cat([x + 0.3 * torch.randn_like(x), x + 0.3 * torch.randn_like(x)])


def main():
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(10, 24), nn.GELU(), nn.Linear(24, 24))
    student = nn.Sequential(backbone, Head(24, 8, 16))
    teacher = copy.deepcopy(student).requires_grad_(False)
    criterion = DistillationLoss(16)
    trainable = [p for p in student.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=2e-3)
    centres = 2 * torch.randn(5, 10)
    data = centres[torch.arange(80) % 5] + 0.3 * torch.randn(80, 10)
    for epoch in range(4):
        for index in torch.randperm(80).split(20):
            views = two_views(data[index])
            with torch.no_grad():
                target = teacher(views)
            loss = criterion(student(views), target)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trainable, 3.0)
            cancel_gradients_last_layer(epoch, student, freeze=1)
            optimizer.step()
            with torch.no_grad():
                for slow, fast in zip(teacher.parameters(), student.parameters()):
                    slow.lerp_(fast, 0.05)
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
