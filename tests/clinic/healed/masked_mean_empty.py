"""Healed. The count is at least one, so an empty sentence gets a zero vector."""

import torch
from torch import nn

torch.manual_seed(1)

VOCABULARY, WIDTH = 50, 16


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, tokens, mask):
        vectors = self.embed(tokens)
        keep = mask.unsqueeze(-1).float()
        pooled = (vectors * keep).sum(dim=1) / keep.sum(dim=1).clamp(min=1)
        return self.head(pooled)


tokens = torch.randint(1, VOCABULARY, (12, 7))
lengths = torch.tensor([7, 5, 3, 0, 6, 2, 1, 7, 4, 4, 3, 5])
mask = torch.arange(7)[None, :] < lengths[:, None]
labels = torch.randint(0, 2, (12,))

model = Bag()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    optimizer.zero_grad()
    loss = criterion(model(tokens, mask), labels)
    loss.backward()
    optimizer.step()
    print("epoch", epoch, "loss", loss.item())
