"""Metric learning on a large catalogue: sparse embeddings, a shared tower, triplet margins."""

import torch
import torch.nn.functional as F
from torch import nn


class ItemTower(nn.Module):
    def __init__(self, items=600, features=5, width=16):
        super().__init__()
        self.identity = nn.Embedding(items, width, sparse=True)
        self.tags = nn.EmbeddingBag(20, width, mode="mean", sparse=True)
        self.project = nn.Sequential(
            nn.Linear(width + features, 32), nn.ReLU(), nn.Linear(32, width)
        )
        nn.init.normal_(self.identity.weight, std=0.1)
        nn.init.normal_(self.tags.weight, std=0.1)

    def forward(self, item, tags, features):
        vector = self.identity(item) + self.tags(tags)
        return F.normalize(self.project(torch.cat([vector, features], dim=1)), dim=1)

    def sparse_parameters(self):
        return [self.identity.weight, self.tags.weight]

    def dense_parameters(self):
        return list(self.project.parameters())


class Catalogue:
    def __init__(self, items=600, groups=6):
        self.group = torch.arange(items) % groups
        centres = 2.0 * torch.randn(groups, 5)
        self.features = centres[self.group] + 1.2 * torch.randn(items, 5)
        self.tags = (3 * self.group.unsqueeze(1) + torch.randint(0, 4, (items, 3))) % 20
        self.groups = groups

    def triplets(self, n):
        anchor_group = torch.randint(0, self.groups, (n,))
        other_group = (anchor_group + torch.randint(1, self.groups, (n,))) % self.groups
        per_group = len(self.group) // self.groups
        picks = torch.randint(0, per_group, (3, n)) * self.groups
        return picks[0] + anchor_group, picks[1] + anchor_group, picks[2] + other_group

    def inputs(self, item):
        return item, self.tags[item], self.features[item]


def train(model, catalogue, steps, margin=0.3):
    optimizers = [
        torch.optim.SparseAdam(model.sparse_parameters(), lr=0.02),
        torch.optim.Adam(model.dense_parameters(), lr=0.01),
    ]
    inactive = 0
    history = []
    for step in range(steps):
        anchor, positive, negative = (
            model(*catalogue.inputs(item)) for item in catalogue.triplets(16)
        )
        hinge = F.relu(
            margin + (anchor - positive).pow(2).sum(1) - (anchor - negative).pow(2).sum(1)
        )
        loss = hinge.mean()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        history.append(loss.item())
        inactive += int(loss.item() == 0.0)
        if step % 10 == 0:
            active = (hinge > 0).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} active triplets {active:.2f}")
    print(f"first {history[0]:.3f} last ten {sum(history[-10:]) / 10:.4f} satisfied {inactive}")


@torch.no_grad()
def recall_at_one(model, catalogue, n=200):
    items = torch.arange(n)
    z = model(*catalogue.inputs(items))
    similarity = z @ z.T
    similarity.fill_diagonal_(float("-inf"))
    return (catalogue.group[similarity.argmax(1)] == catalogue.group[items]).float().mean().item()


def main():
    torch.manual_seed(0)
    catalogue = Catalogue()
    model = ItemTower()
    print(f"recall@1 before {recall_at_one(model, catalogue):.2f}")
    train(model, catalogue, steps=40)
    print(f"recall@1 after {recall_at_one(model, catalogue):.2f}")


if __name__ == "__main__":
    main()
