"""Stage two should unfreeze the backbone. It does not move."""

import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU())
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.backbone(x))


def freeze(module):
    for p in module.parameters():
        p.requires_grad = False


def unfreeze(module):
    module.requires_grad_(True)


def train_stage(model, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _epoch in range(epochs):
        x, y = torch.randn(20, 6), torch.randint(0, 3, (20,))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("loss", loss.item())


model = Classifier()
freeze(model.backbone)
train_stage(model, 2)
unfreeze(model.backbone)
train_stage(model, 3)
