"""Larger batches by accumulation do not make the curve any smoother."""

import torch
from torch import nn

torch.manual_seed(0)

MICRO, WINDOW = 16, 4


class ValueNet(nn.Module):
    def __init__(self, observations=5, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, hidden), nn.Tanh())
        self.value = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.value(self.body(x)).squeeze(1)


class Accumulator:
    """Steps once for so many small batches."""

    def __init__(self, optimizer, window):
        self.optimizer, self.window, self.seen = optimizer, window, 0

    def __call__(self, loss):
        self.optimizer.zero_grad()  # <- GS505
        (loss / self.window).backward()
        self.seen += 1
        if self.seen % self.window == 0:
            self.optimizer.step()  # <~ GS505


net = ValueNet()
update = Accumulator(torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), WINDOW)
for step in range(20):
    observed = torch.randn(MICRO, 5)
    returns = observed[:, 0] - observed[:, 1:3].prod(1) + 0.3 * torch.randn(MICRO)
    loss = nn.functional.smooth_l1_loss(net(observed), returns)
    update(loss)
    if step % WINDOW == 0:
        print(f"step {step} loss {loss.item():.4f}")
