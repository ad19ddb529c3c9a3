"""Knowledge graph completion for item recommendation with a core tensor."""

from collections import defaultdict

import torch
from torch import nn


class TriplesData:
    def __init__(self, entities=40, relations=("also_bought", "brand_of", "viewed", "similar")):
        self.entities = entities
        self.relation_ids = {name: i for i, name in enumerate(relations)}
        group = torch.randint(0, 5, (entities,))
        triples = []
        for r in self.relation_ids.values():
            for head in range(entities):
                wanted = (group[head] + r) % 5
                tails = torch.nonzero(group == wanted).flatten()
                for tail in tails[torch.randperm(len(tails))[:3]].tolist():
                    triples.append((head, r, tail))
        self.vocab = defaultdict(list)
        for head, r, tail in triples:
            self.vocab[(head, r)].append(tail)

    def batches(self, size):
        pairs = list(self.vocab)
        for chunk in torch.randperm(len(pairs)).split(size):
            keys = [pairs[i] for i in chunk.tolist()]
            targets = torch.zeros(len(keys), self.entities)
            for row, key in enumerate(keys):
                targets[row, self.vocab[key]] = 1.0
            heads, rels = torch.tensor(keys).t()
            yield heads, rels, targets


class CoreTensorScorer(nn.Module):
    def __init__(self, entities, relations, d_ent=16, d_rel=8, drop=0.1):
        super().__init__()
        self.ent = nn.Embedding(entities, d_ent)
        self.rel = nn.Embedding(relations, d_rel, padding_idx=0)  # <- GS535
        self.core = nn.Parameter(torch.empty(d_rel, d_ent, d_ent).uniform_(-1.0, 1.0))
        self.norm_in, self.norm_out = nn.BatchNorm1d(d_ent), nn.BatchNorm1d(d_ent)
        self.drop = nn.Dropout(drop)
        self.reset()

    def reset(self):
        nn.init.xavier_normal_(self.ent.weight)
        nn.init.xavier_normal_(self.rel.weight)

    def forward(self, heads, rels):
        x = self.drop(self.norm_in(self.ent(heads))).unsqueeze(1)
        mats = torch.einsum("br,rij->bij", self.rel(rels), self.core)
        x = self.norm_out(torch.bmm(x, mats).squeeze(1))
        return self.drop(x) @ self.ent.weight.t()


def main(epochs=4, lr=5e-3, smoothing=0.1):
    torch.manual_seed(40)
    data = TriplesData()
    model = CoreTensorScorer(data.entities, len(data.relation_ids))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        model.train()
        losses = []
        for heads, rels, targets in data.batches(32):
            targets = (1.0 - smoothing) * targets + smoothing / data.entities
            loss = criterion(model(heads, rels), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        print(f"epoch {epoch} cost {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
