"""A small residual network learns to tell circles, squares, triangles and crosses apart.

The pictures are drawn here, a light colour on a dark one with noise on top. Every block is a place
where the gradient splits in two and joins again: through the convolutions and along the shortcut.

Try:
    gradscope trace examples/convnet/train.py
    gradscope backward examples/convnet/train.py
    gradscope backward examples/convnet/train.py --root "logits[0, 2]"
    gradscope backward examples/convnet/train.py --call 20 -- --epochs 1
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES = ["circle", "square", "triangle", "cross"]


def draw_masks(labels, size):
    """Which pixels of a size x size picture belong to each shape, of random radius and place."""
    radius, *center = torch.rand(len(labels), 3, 1, 1).unbind(1)
    radius = (0.2 + 0.15 * radius) * size
    rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    v, u = (
        (pixels - radius - place * (size - 2 * radius)) / radius
        for pixels, place in zip((rows, columns), center, strict=True)
    )
    circle = u.square() + v.square() < 1
    square = torch.maximum(u.abs(), v.abs()) < 0.85
    triangle = (v < 0.8) & (v > 2 * u.abs() - 1)
    cross = (torch.minimum(u.abs(), v.abs()) < 0.25) & (torch.maximum(u.abs(), v.abs()) < 1)
    return torch.stack([circle, square, triangle, cross])[labels, torch.arange(len(labels))]


class Shapes(Dataset):
    """Noisy pictures [3, size, size] with the number of the shape drawn in each."""

    def __init__(self, length, size=32, noise=0.2):
        self.labels = torch.arange(length) % len(CLASSES)
        masks = draw_masks(self.labels, size)
        paper, ink = torch.rand(2, length, 3, 1, 1) / 2
        self.images = torch.where(masks[:, None], 0.5 + ink, paper) - 0.5
        self.images += noise * torch.randn_like(self.images)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class ResidualBlock(nn.Module):
    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class SmallResNet(nn.Module):
    def __init__(self, num_classes, width=16, dropout=0.2):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        self.layer1 = ResidualBlock(width, width)
        self.layer2 = ResidualBlock(width, 2 * width, stride=2)
        self.layer3 = ResidualBlock(2 * width, 4 * width, stride=2)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(4 * width, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.fc(self.dropout(x))


def train_one_epoch(model, loader, optimizer, criterion, device):
    model.train()
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = 0
    for images, labels in loader:
        predictions = model(images.to(device)).argmax(dim=1)
        correct += (predictions == labels.to(device)).sum().item()
    return correct / len(loader.dataset)


def parse_args():
    parser = argparse.ArgumentParser(description="Train a small residual network on shapes.")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--train-size", type=int, default=1280)
    parser.add_argument("--test-size", type=int, default=400)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(args.seed)

    train_loader = DataLoader(Shapes(args.train_size), args.batch_size, shuffle=True)
    test_loader = DataLoader(Shapes(args.test_size), args.batch_size)
    model = SmallResNet(len(CLASSES), args.width, args.dropout).to(args.device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=args.lr,
        momentum=args.momentum,
        weight_decay=args.weight_decay,
    )
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    print(f"accuracy before training {evaluate(model, test_loader, args.device):.1%}")

    for epoch in range(1, args.epochs + 1):
        loss = train_one_epoch(model, train_loader, optimizer, criterion, args.device)
        scheduler.step()
        accuracy = evaluate(model, test_loader, args.device)
        print(f"epoch {epoch}  loss {loss:.4f}  test accuracy {accuracy:.1%}")


if __name__ == "__main__":
    main()
