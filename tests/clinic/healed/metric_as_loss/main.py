"""Healed. The loss calls the inner function, which keeps the history; the metric detaches
for logging.
"""

import torch
from similarity import Similarity
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16))
    scale = nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.Adam([*model.parameters(), scale], lr=1e-2)
    metric = Similarity()
    x, y = torch.randn(20, 16), torch.randn(20, 16)
    for epoch in range(3):
        restored = model(x)
        loss = scale * (1 - metric.compute(restored, y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


main()
