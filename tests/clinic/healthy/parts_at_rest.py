"""Schedules that end at zero: a warm restart, a part that comes to rest before the others, and a
cosine whose last step is made with next to nothing."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def rates(steps):
    """The body rests in the last third, the head goes on by a cosine."""

    def body(step):
        return max(0.0, 1.0 - 1.5 * step / steps)

    def head(step):
        return 0.5 * (1 + math.cos(math.pi * step / (steps - 1)))

    return body, head


def main(steps=15):
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(6, 24), nn.GELU())
    head = nn.Linear(24, 2)
    optimizer = torch.optim.AdamW([{"params": body.parameters()}, {"params": head.parameters()}])
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] = 1e-2
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, list(rates(steps)))
    again = torch.optim.SGD(head.parameters(), lr=0.1)
    restarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(again, 5)
    for step in range(2 * steps):
        x = torch.randn(32, 6)
        loss = F.mse_loss(head(body(x)), torch.stack([x[:, 0], x[:, 1] * x[:, 2]], dim=1))
        which, schedule = (optimizer, scheduler) if step < steps else (again, restarts)
        optimizer.zero_grad()
        loss.backward()
        which.step()
        schedule.step()
        if step % 10 == 9:
            print(f"step {step} loss {loss.item():.4f} {schedule.get_last_lr()}")


if __name__ == "__main__":
    main()
