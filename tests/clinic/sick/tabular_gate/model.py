from torch import nn

from functions import Sigmoid


class GatedBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.value = nn.Linear(dim, dim)
        self.gate = nn.Sequential(nn.Linear(dim, dim), Sigmoid())

    def forward(self, x):
        return x + self.value(x).tanh() * self.gate(x)


class TabularNet(nn.Module):
    def __init__(self, num_features, dim=32, depth=2):
        super().__init__()
        self.embed = nn.Linear(num_features, dim)
        self.blocks = nn.Sequential(*[GatedBlock(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, 1)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x))).squeeze(-1)
