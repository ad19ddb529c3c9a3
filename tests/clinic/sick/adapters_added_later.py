"""Low-rank adapters are put into the attention of a pretrained model; they stay at their start."""

import torch
from torch import nn

torch.manual_seed(0)


class LowRank(nn.Module):
    def __init__(self, layer, rank=2):
        super().__init__()
        self.layer = layer
        self.down = nn.Parameter(0.1 * torch.randn(rank, layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.down.T @ self.up.T


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.shape[-1] ** 0.5
        return self.norm(x + scores.softmax(-1) @ self.value(x))


class Tagger(nn.Module):
    def __init__(self, words=30, width=16, tags=5):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.block = Block(width)
        self.tag = nn.Linear(width, tags)

    def forward(self, ids):
        return self.tag(self.block(self.embed(ids)))


def make_optimizer(model, lr):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)  # <~ GS307
    return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 4)


def add_adapters(block):
    for name in ("query", "value"):
        setattr(block, name, LowRank(getattr(block, name)))  # <~ GS307


def main():
    model = Tagger()
    optimizer, scheduler = make_optimizer(model, lr=1e-2)  # <- GS307
    add_adapters(model.block)
    for step in range(6):
        ids = torch.randint(30, (8, 7))
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), (ids % 5).flatten())
        model.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(f"step {step} loss {loss.item():.4f}")


main()
