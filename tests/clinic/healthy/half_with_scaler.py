"""Autocast to float16 with a weight in the loss that needs the scaler, which is there."""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    head = nn.Linear(64, 1)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=1.0)
    scaler = torch.amp.GradScaler("cpu")
    for step in range(4):
        x = torch.randn(64, 16)
        with torch.autocast("cpu", dtype=torch.float16):
            prediction = head(model(x))
        loss = nn.functional.mse_loss(prediction.float(), x[:, :1].sin()) * 4e-6
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(step, loss.item())


main()
