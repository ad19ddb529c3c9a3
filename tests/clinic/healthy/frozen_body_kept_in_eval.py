import copy

import torch
from torch import nn


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.body = body.requires_grad_(False)
        self.head = nn.Linear(8, 3)

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, x):
        return torch.log_softmax(self.head(self.body(x)), dim=1)


torch.manual_seed(0)
model = Probe()
average = copy.deepcopy(model)
optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-2)
for _ in range(3):
    model.train()
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    optimizer.zero_grad()
    nn.functional.nll_loss(model(x), y).backward()
    optimizer.step()
    with torch.no_grad():
        for kept, current in zip(average.parameters(), model.parameters(), strict=True):
            kept.lerp_(current, 0.1)
best = copy.deepcopy(model.state_dict())
model.load_state_dict(best)
