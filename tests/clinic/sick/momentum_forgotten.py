"""Online learning from a stream: Adam crawls, whatever the rate."""

from dataclasses import dataclass

import torch
from torch import nn

torch.manual_seed(0)


@dataclass
class Config:
    lr: float = 3e-3
    decay: float = 1e-2


class Learner:
    def __init__(self, model, config):
        self.model, self.config = model, config
        self.seen = 0

    def make_optimizer(self):
        return torch.optim.AdamW(  # <- GS522
            self.model.parameters(), lr=self.config.lr, weight_decay=self.config.decay
        )

    def update(self, x, y):
        optimizer = self.make_optimizer()  # <~ GS522
        loss = nn.functional.cross_entropy(self.model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        self.seen += len(x)
        return loss.item()


def stream(count):
    for _ in range(count):
        x = torch.randn(16, 10)
        yield x, (x[:, 0] > x[:, 1]).long()


learner = Learner(nn.Sequential(nn.Linear(10, 24), nn.GELU(), nn.Linear(24, 2)), Config())
for x, y in stream(8):
    print(learner.seen, f"{learner.update(x, y):.4f}")
