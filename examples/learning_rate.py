"""How long a step may be: the loss falls as the gradient says, or rises.

gradscope check examples/learning_rate.py --step
gradscope check examples/learning_rate.py --step --lr 3
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
lr = parser.parse_args().lr

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)

for _ in range(20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
