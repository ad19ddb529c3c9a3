"""A training step that stops at a breakpoint, between forward and backward.

python examples/debugger/paused.py
gradscope doctor examples/debugger/paused.py
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))


def step(inputs: torch.Tensor, targets: torch.Tensor) -> None:
    outputs = model(inputs)
    loss = nn.functional.mse_loss(outputs, targets)
    breakpoint()
    loss.backward()


step(torch.randn(4, 3), torch.randn(4, 1))
