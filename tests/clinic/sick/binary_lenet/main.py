"""LeNet with binary activations."""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from binary import BinConv2d, BinLinear


class LeNet5(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(12)
        self.pool = nn.MaxPool2d(2)
        self.bin_conv2 = BinConv2d(12, 24, 3, padding=1)
        self.bin_ip1 = BinLinear(24 * 9, 64)
        self.ip2 = nn.Linear(64, classes)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.pool(self.bin_conv2(x))
        return self.ip2(self.bin_ip1(x.flatten(1)))


def digits(n, seed, classes=6):
    proto = torch.randn(classes, 1, 12, 12, generator=torch.Generator().manual_seed(99))
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=g)
    return TensorDataset(proto[y] + 0.7 * torch.randn(n, 1, 12, 12, generator=g), y)


def train(epoch, model, loader, criterion, optimizer):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % 10 == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}/{len(loader)}]\tLoss: {loss.item():.6f}")


@torch.no_grad()
def test(model, loader):
    model.eval()
    correct = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    print(f"Test Accuracy: {100.0 * correct / len(loader.dataset):.2f}%")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=0.005)
    args = parser.parse_args()
    torch.manual_seed(1)
    net = LeNet5()
    opt = torch.optim.Adam(net.parameters(), lr=args.lr, weight_decay=1e-5)
    train_loader = DataLoader(digits(128, 1), batch_size=32, shuffle=True)
    test_loader = DataLoader(digits(200, 2), batch_size=100)
    for ep in range(1, args.epochs + 1):
        train(ep, net, train_loader, nn.CrossEntropyLoss(), opt)
        test(net, test_loader)
