"""The curve of the loss is jagged at the end of each epoch, and only there."""

import torch
from torch import nn

torch.manual_seed(0)

WINDOW = 3


class Regressor(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(6, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(1)


def run_epoch(model, optimizer, batches):
    total = 0.0
    for index, (x, y) in enumerate(batches):
        if index % WINDOW == 0:
            optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(x), y)
        (loss / WINDOW).backward()
        if index % WINDOW == WINDOW - 1:
            optimizer.step()
        total += loss.item()
    optimizer.step()  # <- GS513
    return total / len(batches)


x = torch.randn(6, 16, 6)
batches = list(zip(x, x[..., 0] * x[..., 1] - x[..., 2], strict=True))
model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    print(f"epoch {epoch} loss {run_epoch(model, optimizer, batches):.4f}")
