import torch
from torch import nn


def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.l1_loss(model(x), y).backward()
        optimizer.step()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 12), nn.SiLU(), nn.Linear(12, 1))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 2], gamma=0.5)
loader = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(2)]
for _epoch in range(3):
    scheduler.step()  # <- GS511
    train_epoch(model, loader, optimizer)
