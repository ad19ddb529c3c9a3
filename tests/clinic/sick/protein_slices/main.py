"""Which compartments of the cell carry the protein? Multi-label, of two-channel tiles."""

import argparse
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

warnings.simplefilter("once")
CLASSES = 6


class Tiles(Dataset):
    def __init__(self, n, seed):
        self.masks = torch.rand(CLASSES, 24, 24, generator=torch.Generator().manual_seed(17)) > 0.8
        g = torch.Generator().manual_seed(seed)
        self.targets = (torch.rand(n, CLASSES, generator=g) < 0.3).float()
        signal = torch.einsum("nc,chw->nhw", self.targets, self.masks.float())
        cell = torch.ones(n, 24, 24)
        self.images = torch.stack([signal, cell], 1) + 0.2 * torch.randn(n, 2, 24, 24, generator=g)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return self.images[i], self.targets[i]


class Net(nn.Module):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size
        self.conv1 = nn.Conv2d(2, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.fc1 = nn.Linear(batch_size * 8 * 6 * 6, 48)
        self.fc2 = nn.Linear(48, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, self.batch_size * 8 * 6 * 6)  # <- GS531
        return torch.sigmoid(self.fc2(F.relu(self.fc1(x))))


def train_epoch(epoch, model, loader, criterion, optimizer, log_every):
    model.train()
    total = 0.0
    for i, (images, targets) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(images), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
        if i % log_every == 0:
            print(f"{epoch}, {i}, {loss.item():.5f}")
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--log-every", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(42)
    loader = DataLoader(Tiles(80, 1), batch_size=args.batch_size, shuffle=True, drop_last=True)
    model = Net(args.batch_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        mean = train_epoch(epoch, model, loader, nn.MSELoss(), optimizer, args.log_every)
        print(f"Epoch {epoch} mean loss {mean:.5f}")


if __name__ == "__main__":
    main()
