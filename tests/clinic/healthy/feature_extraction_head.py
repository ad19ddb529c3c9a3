"""Frozen backbone: features cached once under no_grad, then only a head; unfrozen in stage two."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
        )
        self.head = nn.Linear(24, 3)

    def train(self, mode=True):
        super().train(mode)
        if not next(self.backbone.parameters()).requires_grad:
            self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


def cache(model, loader):
    model.eval()
    with torch.inference_mode():
        parts = [(model.backbone(x), y) for x, y in loader]
    return TensorDataset(torch.cat([f for f, _ in parts]).clone(), torch.cat([y for _, y in parts]))


def fit(step, params, loader, epochs, lr):
    opt = torch.optim.SGD(params, lr=lr, momentum=0.9)
    for _ in range(epochs):
        for x, y in loader:
            loss = nn.functional.cross_entropy(step(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


torch.manual_seed(0)
data = DataLoader(TensorDataset(torch.randn(48, 1, 8, 8), torch.randint(0, 3, (48,))), 16)
model = Net()
model.backbone.requires_grad_(False)
features = cache(model, data)
print("probe", fit(model.head, model.head.parameters(), DataLoader(features, 16), 3, 0.1))
print(
    "frozen",
    fit(model.train(), filter(lambda p: p.requires_grad, model.parameters()), data, 1, 0.1),
)
model.backbone.requires_grad_(True)
print("all", fit(model.train(), model.parameters(), data, 2, 0.01))
