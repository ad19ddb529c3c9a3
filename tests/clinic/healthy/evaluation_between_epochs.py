"""Training with evaluation between the epochs, a scheduler, and early stopping."""

import copy

import torch
from torch import nn

torch.manual_seed(0)

x = torch.randn(120, 4)
y = (x[:, 0] + x[:, 1] ** 2 > 0.5).long()
train, test = (x[:80], y[:80]), (x[80:], y[80:])
model = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.BatchNorm1d(24), nn.Linear(24, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)


def evaluate():
    model.eval()
    with torch.no_grad():
        right = (model(test[0]).argmax(dim=1) == test[1]).float().mean()
    model.train()
    return right.item()


best, kept, patience = 0.0, None, 2
for epoch in range(8):
    for xb, yb in zip(train[0].split(20), train[1].split(20), strict=True):
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    accuracy = evaluate()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.2f}")
    if accuracy > best:
        best, kept, patience = accuracy, copy.deepcopy(model.state_dict()), 2
    else:
        patience -= 1
        if patience == 0:
            break
model.load_state_dict(kept)
