"""SimSiam: stop-gradient on the targets; collapse is monitored on detached outputs."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class SimSiam(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(10, d), nn.BatchNorm1d(d), nn.ReLU(inplace=True), nn.Linear(d, d)
        )
        self.predictor = nn.Sequential(nn.Linear(d, 4), nn.ReLU(inplace=True), nn.Linear(4, d))

    def forward(self, x1, x2):
        z1, z2 = self.encoder(x1), self.encoder(x2)
        p1, p2 = self.predictor(z1), self.predictor(z2)
        return p1, p2, z1.detach(), z2.detach()


def negative_cosine(p, z):
    return -F.cosine_similarity(p, z, dim=1).mean()


model = SimSiam()
groups = [
    {"params": model.encoder.parameters(), "fix_lr": False},
    {"params": model.predictor.parameters(), "fix_lr": True},
]
opt = torch.optim.SGD(groups, lr=0.05, momentum=0.9, weight_decay=1e-4)
spread = 0.0
for step in range(4):
    base = torch.randn(32, 10)
    p1, p2, z1, z2 = model(base + 0.1 * torch.randn_like(base), base + 0.1 * torch.randn_like(base))
    loss = (negative_cosine(p1, z2) + negative_cosine(p2, z1)) * 0.5
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        spread = 0.9 * spread + 0.1 * F.normalize(z1, dim=1).std(0).mean()
    print(step, loss.item(), spread.item())
