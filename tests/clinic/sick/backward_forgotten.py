import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))

    def forward(self, x):
        return self.layers(x)


def run_epoch(model, loader, criterion, optimizer):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        total += loss.item()
        optimizer.step()  # <- GS505
    return total / len(loader)


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters())
loader = [(torch.randn(8, 8), torch.randint(0, 2, (8,))) for _ in range(4)]
for _epoch in range(2):
    print(run_epoch(model, loader, nn.CrossEntropyLoss(), optimizer))
