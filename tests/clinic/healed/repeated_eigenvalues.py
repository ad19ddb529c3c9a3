"""Healed. A random start keeps the eigenvalues apart."""

import torch
from torch import nn

torch.manual_seed(0)


class PrincipalAxes(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.factor = nn.Parameter(torch.eye(dim) + 0.5 * torch.randn(dim, dim))

    def forward(self, x):
        covariance = self.factor @ self.factor.T
        _, axes = torch.linalg.eigh(covariance)
        return x @ axes


x = torch.randn(50, 4)
y = x @ torch.randn(4, 1)
model = nn.Sequential(PrincipalAxes(4), nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{epoch} {loss.item():.4f}")
