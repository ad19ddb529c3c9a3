"""Fine-tuning with frozen statistics, learning rates by depth and groups that start at zero."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts, LambdaLR

CONFIG = {
    "epochs": 6,
    "batch": 32,
    "starts": {"stem": 5, "body": 3, "neck": 1},
    "rates": {"stem": 0.01, "body": 0.03, "neck": 0.05},
    "head_rate": 0.01,
}


class Backbone(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv1d(1, channels, 3, padding=1, bias=False), nn.BatchNorm1d(channels), nn.ReLU()
        )
        self.body = nn.Sequential(
            nn.Conv1d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm1d(channels),
            nn.ReLU(),
        )
        self.neck = nn.Linear(channels, 16)
        self.frozen_statistics = False

    def forward(self, x):
        return F.relu(self.neck(self.body(self.stem(x)).mean(dim=-1)))

    def freeze_statistics(self):
        self.frozen_statistics = True
        for module in self.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.requires_grad_(False)
        return self.train(self.training)

    def train(self, mode=True):
        super().train(mode)
        if self.frozen_statistics:
            for module in self.modules():
                if isinstance(module, nn.BatchNorm1d):
                    module.eval()
        return self


class Classifier(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone, self.head = backbone, nn.Linear(16, classes)

    def forward(self, x, train_backbone=True):
        with torch.set_grad_enabled(torch.is_grad_enabled() and train_backbone):
            features = self.backbone(x)
        return self.head(features)

    def replace_head(self, classes):
        self.head = nn.Linear(16, classes)
        nn.init.zeros_(self.head.bias)


def waves(n, classes, offset):
    label = torch.randint(0, classes, (n,))
    grid = torch.linspace(0, 1, 24)
    freq = (label + offset).unsqueeze(1)
    signal = torch.sin(6.28 * freq * (grid + torch.rand(n, 1)))
    return (signal + 0.1 * torch.randn(n, 24)).unsqueeze(1), label


def pretrain(model, steps=20):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        x, y = waves(48, 4, 1.0)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def build_optimizers(model, config):
    groups, factors = [], []
    for name, start in config["starts"].items():
        params = [p for p in getattr(model.backbone, name).parameters() if p.requires_grad]
        groups.append({"params": params, "lr": config["rates"][name]})
        factors.append(lambda epoch, s=start: 1.0 if epoch >= s else 0.0)
    body = torch.optim.SGD(groups, momentum=0.9)
    head = torch.optim.AdamW(model.head.parameters(), lr=config["head_rate"], weight_decay=1e-3)
    return (body, LambdaLR(body, factors)), (head, CosineAnnealingWarmRestarts(head, T_0=2))


def main():
    torch.manual_seed(0)
    model = Classifier(Backbone(), 4)
    print(f"pretrained to {pretrain(model):.3f}")
    model.replace_head(3)
    model.backbone.freeze_statistics()
    model.zero_grad()

    x, y = waves(192, 3, 1.5)
    (body, by_epoch), (head, by_batch) = build_optimizers(model, CONFIG)
    per_epoch = len(x) // CONFIG["batch"]
    for epoch in range(CONFIG["epochs"]):
        model.train()
        thawed = epoch >= min(CONFIG["starts"].values())
        total = 0.0
        for i, ids in enumerate(torch.randperm(len(x)).split(CONFIG["batch"])):
            loss = F.cross_entropy(model(x[ids], thawed), y[ids])
            loss.backward()
            body.step()
            head.step()
            body.zero_grad(set_to_none=False)
            head.zero_grad(set_to_none=False)
            by_batch.step(epoch + (i + 1) / per_epoch)
            total += loss.item() / per_epoch
        rates = [group["lr"] for group in body.param_groups]
        by_epoch.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x).argmax(1) == y).float().mean().item()
        print(f"epoch {epoch} loss {total:.3f} accuracy {accuracy:.2f} backbone rates {rates}")


if __name__ == "__main__":
    main()
