import torch
import torch.nn as nn
from layers import Dice, HistoryAttention


class InterestRanker(nn.Module):
    def __init__(self, items=150, users=60, dim=10, hidden=(32, 16)):
        super().__init__()
        self.item = nn.Embedding(items, dim, padding_idx=0)
        self.user = nn.Embedding(users, dim)
        self.attention = HistoryAttention(dim)
        layers, width = [], 3 * dim
        for size in hidden:
            layers += [nn.Linear(width, size), Dice(size)]
            width = size
        self.tower = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, user, item, history):
        target = self.item(item)
        interest = self.attention(target, self.item(history), history > 0)
        return self.tower(torch.cat([self.user(user), target, interest], -1)).squeeze(-1)
