"""Numerically careful code: every guard that the sick programs lack."""

import torch
from torch import nn

torch.manual_seed(0)


class Careful(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(6, 12)
        self.head = nn.Linear(12, 4)

    def forward(self, x):
        h = self.mix(x)
        h = h / (h.norm(dim=1, keepdim=True) + 1e-6)
        positive = h > 0
        root = torch.sqrt(torch.where(positive, h, torch.ones_like(h)))
        h = torch.where(positive, root, torch.zeros_like(h)) + 0.1 * h
        return self.head(h)


x = torch.randn(40, 6)
x[::9] = 0.0
y = torch.randint(0, 4, (40,))
model = Careful()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(4):
    scores = 8 * model(x)
    nll = (torch.logsumexp(scores, dim=1) - scores.gather(1, y[:, None]).squeeze(1)).mean()
    p = torch.softmax(scores, dim=1)
    entropy = -(p * torch.log(p.clamp(min=1e-7))).sum(dim=1).mean()
    loss = nll - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
