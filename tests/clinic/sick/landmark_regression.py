import torch
import torch.nn as nn
import torch.nn.functional as F


def soft_argmax(heatmaps, alpha=1000.0):  # <~ GS203
    """Coordinates in pixels from a stack of heatmaps (batch, points, height, width)."""
    batch, points, height, width = heatmaps.shape
    weights = F.softmax(alpha * heatmaps.flatten(2), dim=-1)  # <- GS203
    weights = weights.view(batch, points, height, width)
    ys = torch.arange(height, dtype=heatmaps.dtype)
    xs = torch.arange(width, dtype=heatmaps.dtype)
    y = (weights.sum(3) * ys).sum(-1)
    x = (weights.sum(2) * xs).sum(-1)
    return torch.stack([x, y], dim=-1)


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.norm1 = nn.GroupNorm(2, width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return x + self.conv2(F.relu(self.norm1(self.conv1(x))))


class LandmarkNet(nn.Module):
    def __init__(self, points, width=8):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 5, padding=2)
        self.body = nn.Sequential(ResidualBlock(width), ResidualBlock(width))
        self.heatmaps = nn.Conv2d(width, points, 1)

    def forward(self, x):
        return soft_argmax(self.heatmaps(self.body(self.stem(x))))


class WingLoss(nn.Module):
    def __init__(self, width=5.0, curvature=0.5):
        super().__init__()
        self.width, self.curvature = width, curvature

    def forward(self, prediction, target):
        distance = (prediction - target).abs()
        inner = self.width * torch.log1p(distance / self.curvature)
        offset = self.width - self.width * torch.log1p(torch.tensor(self.width / self.curvature))
        return torch.where(distance < self.width, inner, distance - offset.abs()).mean()


def blobs(batch_size, points, size, generator):
    target = torch.randint(2, size - 2, (batch_size, points, 2), generator=generator).float()
    grid = torch.arange(size).float()
    dx = grid[None, None, :] - target[..., 0:1]
    dy = grid[None, None, :] - target[..., 1:2]
    bumps = torch.exp(-(dy[..., :, None] ** 2 + dx[..., None, :] ** 2) / 4)
    strength = 8 * torch.arange(1, points + 1).view(1, points, 1, 1)
    image = (bumps * strength).sum(1, keepdim=True)
    return image + 0.5 * torch.randn(image.shape, generator=generator), target


def main(points=3, size=16, epochs=4, batches=5):
    torch.manual_seed(27)
    generator = torch.Generator().manual_seed(28)
    model = LandmarkNet(points)
    criterion = WingLoss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    data = [blobs(8, points, size, generator) for _ in range(batches)]
    for epoch in range(epochs):
        total, error = 0.0, 0.0
        for images, target in data:
            prediction = model(images)
            loss = criterion(prediction, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / batches
            error += (prediction.detach() - target).norm(dim=-1).mean().item() / batches
        print(f"epoch {epoch} loss {total:.4f} mean pixel error {error:.3f}")


if __name__ == "__main__":
    main()
