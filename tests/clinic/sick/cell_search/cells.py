import torch
import torch.nn as nn
import torch.nn.functional as F


def candidates(width: int):
    return nn.ModuleList(
        [
            nn.Identity(),
            nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 3, padding=1)),
            nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 5, padding=2)),
            nn.AvgPool1d(3, stride=1, padding=1),
        ]
    )


class Cell(nn.Module):
    def __init__(self, width: int, edges: int):
        super().__init__()
        self.edges = nn.ModuleList(candidates(width) for _ in range(edges))
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x, weights):
        for ops, mix in zip(self.edges, weights):
            x = x + sum(w * op(x) for w, op in zip(mix, ops))
        return self.norm(x)


class SearchNet(nn.Module):
    def __init__(self, channels=2, width=12, cells=2, edges=2, classes=4):
        super().__init__()
        self.stem = nn.Conv1d(channels, width, 3, padding=1)
        self.cells = nn.ModuleList(Cell(width, edges) for _ in range(cells))
        self.head = nn.Linear(width, classes)
        self.alpha = nn.Parameter(1e-3 * torch.randn(edges, 4))

    def arch_parameters(self):
        return [self.alpha]

    def weight_parameters(self):
        return [p for n, p in self.named_parameters() if n != "alpha"]

    def forward(self, x):
        mix = F.softmax(self.alpha, dim=-1)
        h = self.stem(x)
        for cell in self.cells:
            h = cell(h, mix)
        return self.head(h.mean(-1))
