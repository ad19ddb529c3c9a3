"""The embedding of my tagger does not change although it is in the optimizer."""

import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 8)  # <~ GS305
        self.recurrent = nn.GRU(8, 8, batch_first=True)
        self.tags = nn.Linear(8, 4)

    def forward(self, tokens):
        states, _ = self.recurrent(self.embedding(tokens))
        return self.tags(states)


def prepare(model, seed_vectors):
    model.embedding.weight.data.copy_(seed_vectors)
    model.embedding.weight.requires_grad = False  # <- GS305
    return model


model = prepare(Tagger(), torch.randn(30, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
tokens, tags = torch.randint(0, 30, (10, 6)), torch.randint(0, 4, (10, 6))
for epoch in range(3):
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
