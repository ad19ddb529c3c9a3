"""A one-stage detector; in some batches no image has an object in it."""

import torch
import torch.nn.functional as F
from torch import nn


class Detector(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.SiLU(),
        )
        self.objectness = nn.Conv2d(width, 1, 1)
        self.box = nn.Conv2d(width, 4, 1)
        nn.init.constant_(self.objectness.bias, -3.0)

    def forward(self, x):
        features = self.trunk(x)
        return self.objectness(features).squeeze(1), self.box(features).permute(0, 2, 3, 1)


def detection_loss(scores, boxes, positive, targets):
    count = positive.sum().clamp(min=1)
    probability = scores.sigmoid()
    bce = F.binary_cross_entropy_with_logits(scores, positive.float(), reduction="none")
    focus = torch.where(positive, 1 - probability, probability).detach().pow(2)
    object_loss = (focus * bce).sum() / count
    box_loss = F.smooth_l1_loss(boxes[positive], targets[positive], reduction="sum") / count
    return object_loss, box_loss


def scenes(count, generator, empty):
    images = 0.1 * torch.randn(count, 1, 12, 12, generator=generator)
    positive = torch.zeros(count, 6, 6, dtype=torch.bool)
    targets = torch.zeros(count, 6, 6, 4)
    if empty:
        return images, positive, targets
    for i in range(count):
        y, x = torch.randint(0, 9, (2,), generator=generator).tolist()
        size = int(torch.randint(2, 4, (1,), generator=generator))
        images[i, 0, y : y + size, x : x + size] += 1.0
        positive[i, y // 2, x // 2] = True
        targets[i, y // 2, x // 2] = torch.tensor([y % 2, x % 2, size, size]) / 4
    return images, positive, targets


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(2)
    model = Detector()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=24)
    for step in range(24):
        images, positive, targets = scenes(8, generator, empty=step % 4 == 1)
        object_loss, box_loss = detection_loss(*model(images), positive, targets)
        loss = object_loss + 2 * box_loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        if step % 6 == 0:
            print(f"step {step} object {object_loss.item():.4f} box {box_loss.item():.4f}")


if __name__ == "__main__":
    main()
