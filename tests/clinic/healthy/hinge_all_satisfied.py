"""A margin loss that most samples already satisfy, so most gradients are exactly zero."""

import torch
from torch import nn


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x):
        return nn.functional.normalize(self.f(x), dim=-1)


def batch_hard(z, y, margin=0.2):
    d = torch.cdist(z, z)
    same = y[:, None] == y[None]
    hardest_pos = d.masked_fill(~same, 0).amax(1)
    hardest_neg = d.masked_fill(same, float("inf")).amin(1)
    return nn.functional.relu(hardest_pos - hardest_neg + margin).mean()


torch.manual_seed(0)
net = Embedder()
opt = torch.optim.Adam(net.parameters(), 1e-3)
centres = torch.randn(4, 10) * 4
for _ in range(5):
    y = torch.randint(0, 4, (32,))
    x = centres[y] + 0.3 * torch.randn(32, 10)
    loss = batch_hard(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
