import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Schedule:
    lr: float = 0.02
    min_lr: float = 0.002
    warmup_epochs: int = 2
    epochs: int = 6
    bias_warmup_lr: float = 0.1


class ConvBlock(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(c_out)

    def forward(self, x):
        return F.silu(self.bn(self.conv(x)))


class GridDetector(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.layers = nn.Sequential(ConvBlock(3, 8, 2), ConvBlock(8, 16, 2), ConvBlock(16, 16, 1))
        self.head = nn.Conv2d(16, 5 + classes, 1)

    def forward(self, x):
        return self.head(self.layers(x))


def create_optimizer(model, schedule):
    biases = [p for n, p in model.named_parameters() if n.endswith("bias")]
    norms = [p for n, p in model.named_parameters() if n.endswith("weight") and p.ndim == 1]
    convs = [p for n, p in model.named_parameters() if p.ndim == 4]
    groups = [
        {"params": biases, "weight_decay": 0.0},
        {"params": convs, "weight_decay": 5e-4},
        {"params": norms, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.SGD(groups, lr=schedule.lr, momentum=0.937, nesterov=True)
    optimizer.start_lr = [schedule.bias_warmup_lr, 0.0, 0.0]
    optimizer.end_lr = [0.0, schedule.lr, schedule.lr]  # <- GS000
    return optimizer


def set_learning_rate(optimizer, schedule, epoch, fraction):
    progress = (epoch + fraction) / schedule.warmup_epochs
    for group, start, end in zip(optimizer.param_groups, optimizer.start_lr, optimizer.end_lr):
        if progress < 1:
            group["lr"] = start + (end - start) * progress
        else:
            t = (epoch - schedule.warmup_epochs) / (schedule.epochs - schedule.warmup_epochs)
            floor = schedule.min_lr / schedule.lr
            group["lr"] = end * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * t)))


def make_batches(count, classes=3):
    batches = []
    for _ in range(count):
        images = torch.rand(4, 3, 24, 24)
        target = torch.zeros(4, 5 + classes, 6, 6)
        ys, xs = torch.randint(0, 6, (2, 4))
        rows = torch.arange(4)
        target[rows, :4, ys, xs] = torch.rand(4, 4)
        target[rows, 4, ys, xs] = 1
        target[rows, 5 + torch.randint(0, classes, (4,)), ys, xs] = 1
        images[:, 0] += F.interpolate(target[:, 4:5], scale_factor=4)[:, 0]
        batches.append((images, target))
    return batches


def detection_loss(output, target):
    mask = target[:, 4] > 0
    box = F.smooth_l1_loss(output[:, :4].movedim(1, -1)[mask], target[:, :4].movedim(1, -1)[mask])
    objectness = F.binary_cross_entropy_with_logits(output[:, 4], target[:, 4])
    classes = F.binary_cross_entropy_with_logits(output[:, 5:], target[:, 5:])
    return 5.0 * box + objectness + classes


def main():
    torch.manual_seed(9)
    schedule = Schedule()
    model = GridDetector()
    optimizer = create_optimizer(model, schedule)
    batches = make_batches(5)
    for epoch in range(schedule.epochs):
        total = 0.0
        for index, (images, target) in enumerate(batches):
            set_learning_rate(optimizer, schedule, epoch, index / len(batches))
            loss = detection_loss(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        rates = " ".join(f"{g['lr']:.4f}" for g in optimizer.param_groups)
        print(f"epoch {epoch} loss {total / len(batches):.4f} lr [{rates}]")


if __name__ == "__main__":
    main()
