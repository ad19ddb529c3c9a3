import torch
from torch import nn


class CenterLoss(nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(classes, width))  # <~ GS307

    def forward(self, features, labels):
        return (features - self.centers[labels]).pow(2).sum(dim=1).mean()


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.PReLU(16), nn.Linear(16, 4))
        self.classes = nn.Linear(4, 5)

    def forward(self, x):
        features = self.body(x)
        return features, self.classes(features)


def train(model, criterion, centers, config):
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)  # <- GS307
    for _ in range(config["steps"]):
        x, labels = torch.randn(20, 8), torch.randint(0, 5, (20,))
        features, scores = model(x)
        loss = criterion(scores, labels) + config["weight"] * centers(features, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
train(Embedder(), nn.CrossEntropyLoss(), CenterLoss(5, 4), {"lr": 0.05, "steps": 4, "weight": 0.01})
