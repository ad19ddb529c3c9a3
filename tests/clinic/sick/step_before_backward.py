import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return x @ self.weight


def pairwise_loss(better, worse):
    return nn.functional.softplus(worse - better).mean()


torch.manual_seed(0)
truth = torch.randn(6)
ranker = Ranker(6)
optimizer = torch.optim.Adam(ranker.parameters(), lr=0.05)
for step in range(6):
    one, other = torch.randn(16, 6), torch.randn(16, 6)
    swap = (one @ truth < other @ truth).unsqueeze(1)
    better, worse = torch.where(swap, other, one), torch.where(swap, one, other)
    loss = pairwise_loss(ranker(better), ranker(worse))
    optimizer.step()  # <- GS508
    optimizer.zero_grad()
    loss.backward()
    print(step, loss.item())
