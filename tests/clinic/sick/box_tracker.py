"""Regresses where an object moved between two frames, on crops gathered into batches."""

import torch
from torch import nn, optim

ARGS = {
    "batch_size": 12,
    "crops_per_pair": 3,
    "iterations": 16,
    "learning_rate": 5e-3,
    "lr_decay_step": 5,
    "gamma": 0.1,
    "momentum": 0.9,
}


class TrackNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.head = nn.Sequential(nn.Linear(2 * 6 * 25, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, previous, current):
        return self.head(torch.cat([self.trunk(previous), self.trunk(current)], dim=1))


def draw(box, size=10):
    grid = torch.arange(size) + 0.5
    x1, y1, x2, y2 = box * size
    inside_x = torch.sigmoid(3 * (grid - x1)) * torch.sigmoid(3 * (x2 - grid))
    inside_y = torch.sigmoid(3 * (grid - y1)) * torch.sigmoid(3 * (y2 - grid))
    return (inside_y[:, None] * inside_x[None]).unsqueeze(0)


class PairDataset:
    def sample(self):
        corner = 0.2 + 0.2 * torch.rand(2)
        return torch.cat([corner, corner + 0.3 + 0.1 * torch.rand(2)])

    def crops(self, box):
        shifts = 0.1 * torch.randn(ARGS["crops_per_pair"], 2)
        moved = [box + torch.cat([s, s]) for s in shifts]
        previous = torch.stack([draw(box)] * len(moved))
        return previous, torch.stack([draw(m) for m in moved]), torch.stack(moved)


def exp_lr_scheduler(optimizer, itr):
    """Decays the learning rate every few iterations."""
    if itr > 0 and itr % ARGS["lr_decay_step"] == 0:
        for group in optimizer.param_groups:
            group["lr"] *= ARGS["gamma"]  # <~ GS514
    return optimizer


def train(model, dataset, criterion, optimizer):
    itr, pending = 0, []
    while itr < ARGS["iterations"]:
        model.train()
        optimizer = exp_lr_scheduler(optimizer, itr)  # <- GS514
        pending.append(dataset.crops(dataset.sample()))
        done = sum(len(p[0]) for p in pending) >= ARGS["batch_size"]
        if not done:
            continue
        previous, current, target = (torch.cat(parts) for parts in zip(*pending))
        pending = []
        optimizer.zero_grad()
        loss = criterion(model(previous, current), target)
        loss.backward()
        optimizer.step()
        itr += 1
        if itr % 4 == 0:
            print(f"itr {itr} loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    model = TrackNet()
    optimizer = optim.SGD(model.parameters(), lr=ARGS["learning_rate"], momentum=ARGS["momentum"])
    train(model, PairDataset(), nn.L1Loss(reduction="sum"), optimizer)


if __name__ == "__main__":
    main()
