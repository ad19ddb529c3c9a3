"""Soft matching of two sets of nodes; the embedding does not learn."""

import torch
import torch.nn.functional as F
from torch import nn


class SoftMatcher(nn.Module):
    """Aligns two sets of nodes, then reads out the aligned features."""

    def __init__(self, d, tau=1e-3):
        super().__init__()
        self.embed = nn.Linear(d, d)
        self.readout = nn.Sequential(nn.Linear(2 * d, d), nn.ReLU(), nn.Linear(d, 1))
        self.tau = tau

    def forward(self, a, b):
        score = self.embed(a) @ self.embed(b).transpose(1, 2)
        plan = F.softmax(score / self.tau, dim=-1)  # <- GS203
        aligned = torch.bmm(plan, b)
        return {"plan": plan, "y": self.readout(torch.cat([a, aligned], -1)).mean((1, 2))}


torch.manual_seed(0)
net = SoftMatcher(8)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _it in range(3):
    a = torch.randn(4, 10, 8)
    b = a[:, torch.randperm(10)] + 0.1 * torch.randn(4, 10, 8)
    loss = F.mse_loss(net(a, b)["y"], torch.randn(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
