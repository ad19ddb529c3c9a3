"""FitNets: a student follows the teacher's hidden layer first, its answers afterwards."""

import torch
import torch.nn.functional as F
from torch import nn


class Teacher(nn.Module):
    def __init__(self, n_in=10, width=48, classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(n_in, width), nn.ReLU())
        self.middle = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.middle(self.stem(x)))


class Student(nn.Module):
    def __init__(self, n_in=10, width=12, classes=4):
        super().__init__()
        self.lower = nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width))
        self.upper = nn.Sequential(nn.ReLU(), nn.Linear(width, classes))

    def forward(self, x):
        guided = self.lower(x)
        return self.upper(guided), guided


class HintRecorder:
    def __init__(self, module):
        self.value = None
        self.handle = module.register_forward_hook(self._record)

    def _record(self, _module, _inputs, output):
        self.value = output.detach()

    def close(self):
        self.handle.remove()


def train_teacher(x, y, steps=12):
    teacher = Teacher()
    optimizer = torch.optim.Adam(teacher.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(teacher(x), y).backward()
        optimizer.step()
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad = False
        p.grad = None
    return teacher


class TwoStageDistiller:
    def __init__(self, teacher, student, temperature=3.0, mix=0.7):
        self.teacher, self.student = teacher, student
        self.regressor = nn.Linear(12, 48)
        self.recorder = HintRecorder(teacher.stem)
        self.temperature, self.mix = temperature, mix

    def hint_loss(self, x, _y):
        with torch.no_grad():
            self.teacher(x)
        _, guided = self.student(x)
        return F.mse_loss(self.regressor(guided), self.recorder.value)

    def soft_loss(self, x, y):
        with torch.no_grad():
            target = F.softmax(self.teacher(x) / self.temperature, dim=1)
        logits, _ = self.student(x)
        soft = F.kl_div(
            F.log_softmax(logits / self.temperature, dim=1), target, reduction="batchmean"
        )
        hard = F.cross_entropy(logits, y)
        return self.mix * self.temperature**2 * soft + (1 - self.mix) * hard

    def run_stage(self, name, loss_fn, params, x, y, epochs):
        optimizer = torch.optim.Adam(params, lr=0.03)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        for epoch in range(epochs):
            total, seen = torch.zeros(()), 0
            for ids in torch.randperm(len(x)).split(48):
                loss = loss_fn(x[ids], y[ids])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach() * len(ids)
                seen += len(ids)
            scheduler.step()
            print(f"{name} epoch {epoch} loss {total.item() / seen:.3f}")


def main():
    torch.manual_seed(0)
    centres = 1.5 * torch.randn(4, 10)
    y = torch.randint(0, 4, (240,))
    x = centres[y] + torch.randn(240, 10)
    teacher, student = train_teacher(x, y), Student()
    distiller = TwoStageDistiller(teacher, student)

    guided = [*student.lower.parameters(), *distiller.regressor.parameters()]
    distiller.run_stage("hints", distiller.hint_loss, guided, x, y, epochs=3)
    distiller.run_stage("answers", distiller.soft_loss, student.parameters(), x, y, epochs=4)
    distiller.recorder.close()
    student.eval()
    with torch.no_grad():
        agree = student(x)[0].argmax(1) == teacher(x).argmax(1)
    print(f"agreement with the teacher {agree.float().mean():.2f}")


if __name__ == "__main__":
    main()
