import torch
from torch import nn

from embeddings import FieldEmbedder


class Dice(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.BatchNorm1d(features, affine=False)
        self.alpha = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        p = torch.sigmoid(self.norm(x))
        return p * x + (1 - p) * self.alpha * x


class InterestNetwork(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding_layer = FieldEmbedder(config["schema"], config["embedding_size"])
        width = self.embedding_layer.out_dim
        self.attention = nn.Sequential(
            nn.Linear(4 * width, 16), nn.Sigmoid(), nn.Linear(16, 1, bias=False)
        )
        self.interest = nn.GRU(width, width, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(3 * width, 24), Dice(24), nn.Linear(24, 1))

    def forward(self, history, candidate):
        items = self.embedding_layer(history)
        target = self.embedding_layer(candidate)
        states, _ = self.interest(items)
        query = target.unsqueeze(1).expand_as(states)
        pair = torch.cat([query, states, query - states, query * states], dim=-1)
        scores = self.attention(pair).masked_fill(history["item"].unsqueeze(-1) == 0, -1e9)
        pooled = (torch.softmax(scores, dim=1) * states).sum(1)
        return self.mlp(torch.cat([pooled, target, pooled * target], dim=-1)).squeeze(-1)
