"""Same data, same model, but sklearn's error is far lower than mine."""

import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


def train_epoch(model, loader, optimizer, loss_func):
    for xb, yb in loader:
        loss = loss_func(model(xb), yb)  # <- GS503
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(0)
x = torch.rand(64, 4)
y = x.sum(dim=1)
loader = DataLoader(TensorDataset(x, y), batch_size=16)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    print(f"epoch {epoch} loss {train_epoch(model, loader, optimizer, nn.MSELoss()):.4f}")
