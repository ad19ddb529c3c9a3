import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = {"dim": 16, "pred_dim": 8, "epochs": 3, "batches": 6, "batch_size": 24, "lr": 0.1}


class Backbone(nn.Sequential):
    def __init__(self, width):
        super().__init__(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )


class SimSiam(nn.Module):
    def __init__(self, width=12, dim=16, pred_dim=8):
        super().__init__()
        self.backbone = Backbone(width)
        self.projection_mlp = nn.Sequential(
            nn.Linear(width, dim),
            nn.BatchNorm1d(dim),
            nn.ReLU(),
            nn.Linear(dim, dim),
            nn.BatchNorm1d(dim, affine=False),
        )
        self.prediction_mlp = nn.Sequential(
            nn.Linear(dim, pred_dim), nn.BatchNorm1d(pred_dim), nn.ReLU(), nn.Linear(pred_dim, dim)
        )

    def forward(self, x0, x1):
        z0 = self.projection_mlp(self.backbone(x0))
        z1 = self.projection_mlp(self.backbone(x1))
        p0, p1 = self.prediction_mlp(z0), self.prediction_mlp(z1)
        return (z0, p0), (z1, p1)  # <~ GS000


class SymNegCosineSimilarityLoss(nn.Module):
    def _neg_cosine(self, p, z):
        p = F.normalize(p, dim=1)
        z = F.normalize(z, dim=1)  # <- GS000
        return -(p * z).sum(dim=1).mean()

    def forward(self, out0, out1):
        z0, p0 = out0
        z1, p1 = out1
        return 0.5 * self._neg_cosine(p0, z1) + 0.5 * self._neg_cosine(p1, z0)


def augment(images):
    flip = torch.rand(len(images), 1, 1, 1) < 0.5
    images = torch.where(flip, images.flip(-1), images)
    brightness = 1 + 0.4 * (torch.rand(len(images), 3, 1, 1) - 0.5)
    return images * brightness + 0.1 * torch.randn_like(images)


def output_std(model, images):
    model.eval()
    with torch.no_grad():
        z = model.projection_mlp(model.backbone(images))
        spread = F.normalize(z, dim=1).std(0).mean().item()
    model.train()
    return spread


def adjust_learning_rate(optimizer, epoch):
    lr = CONFIG["lr"] * 0.5 * (1 + math.cos(math.pi * epoch / CONFIG["epochs"]))
    for group in optimizer.param_groups:
        group["lr"] = CONFIG["lr"] if group["fix_lr"] else lr


def main():
    torch.manual_seed(70)
    model = SimSiam(dim=CONFIG["dim"], pred_dim=CONFIG["pred_dim"])
    criterion = SymNegCosineSimilarityLoss()
    encoder = [p for n, p in model.named_parameters() if not n.startswith("prediction")]
    groups = [
        {"params": encoder, "fix_lr": False},
        {"params": model.prediction_mlp.parameters(), "fix_lr": True},
    ]
    optimizer = torch.optim.SGD(groups, lr=CONFIG["lr"], momentum=0.9, weight_decay=1e-4)
    data = torch.rand(CONFIG["batches"], CONFIG["batch_size"], 3, 12, 12)
    data += torch.randn(CONFIG["batches"], CONFIG["batch_size"], 3, 1, 1)
    for epoch in range(CONFIG["epochs"]):
        adjust_learning_rate(optimizer, epoch)
        total = 0.0
        for images in data:
            loss = criterion(*model(augment(images), augment(images)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(data)
        print(f"epoch {epoch} loss {total:.4f} std {output_std(model, data[0]):.4f}")


if __name__ == "__main__":
    main()
