"""A determinantal point process over items, one of which has no description."""

import torch
from torch import nn


class DPP(nn.Module):
    """Determinantal point process over item features."""

    def __init__(self, d, r):
        super().__init__()
        self.proj = nn.Linear(d, r, bias=False)

    def kernel(self, feats):
        v = self.proj(feats)
        return v @ v.transpose(-1, -2)

    def forward(self, feats, chosen):
        L = self.kernel(feats)
        sub = L[chosen][:, chosen]
        return torch.logdet(sub) - torch.logdet(L + torch.eye(len(L)))  # <- GS101


torch.manual_seed(0)
dpp = DPP(6, 4)
opt = torch.optim.Adam(dpp.parameters(), lr=1e-2)
items = torch.randn(10, 6)
items[4] = 0.0  # an item without a description
for baskets in ([[0, 1, 2], [3, 5]], [[4, 6, 7], [1, 9]], [[2, 8], [5, 6]]):
    loss = -sum(dpp(items, torch.tensor(b)) for b in baskets) / len(baskets)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
