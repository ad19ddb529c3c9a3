"""EvolveGCN: the GRU that evolves the weights has grad None."""

import torch
from torch import nn

torch.manual_seed(0)


class FixedGCN(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d, d) * 0.3)

    def forward(self, adjacency, x):
        return adjacency @ x @ self.weight


class EvolveGCNO(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.recurrent = nn.GRUCell(d, d)
        self.conv = FixedGCN(d)

    def forward(self, adjacency, x):
        evolved = self.recurrent(self.conv.weight)
        self.conv.weight = nn.Parameter(evolved)  # <- GS303
        return self.conv(adjacency, x)


class RecurrentGCN(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.recurrent = EvolveGCNO(d)
        self.linear = nn.Linear(d, 1)

    def forward(self, a, x):
        return self.linear(torch.relu(self.recurrent(a, x)))


model = RecurrentGCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
adjacency = torch.rand(9, 9).softmax(1)
for _epoch in range(2):
    for _t in range(2):
        cost = (model(adjacency, torch.randn(9, 6)) - torch.randn(9, 1)).pow(2).mean()
        cost.backward()
        optimizer.step()
        optimizer.zero_grad()
