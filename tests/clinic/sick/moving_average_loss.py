"""A run of days ends with a recursion-like crash on exit; memory is up by gigabytes."""

from collections import defaultdict

import torch
from torch import nn

torch.manual_seed(0)


class Meter:
    def __init__(self, decay=0.9):
        self.decay = decay
        self.values = defaultdict(lambda: torch.zeros(()))

    def update(self, name, value):
        self.values[name] = (  # <- GS502
            self.decay * self.values[name] + (1 - self.decay) * value  # <~ GS502
        )


model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
meter = Meter()
for step in range(8):
    x = torch.randn(16, 5)
    loss = nn.functional.smooth_l1_loss(model(x), x.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.update("loss", loss)
    print(f"step {step} loss {meter.values['loss'].item():.4f}")
