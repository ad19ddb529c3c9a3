"""Most rows of the embedding are not in any batch; the padding row never gets a gradient."""

import torch
from torch import nn

torch.manual_seed(0)

PAD = 0


class Sentiment(nn.Module):
    def __init__(self, vocabulary=500, width=12):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.head = nn.Linear(width, 1)

    def forward(self, tokens):
        mask = tokens.ne(PAD).unsqueeze(-1)
        total = (self.words(tokens) * mask).sum(dim=1)
        return self.head(total / mask.sum(dim=1).clamp(min=1)).squeeze(1)


tokens = torch.randint(1, 500, (16, 8))
tokens[:, 5:] = PAD
tokens[3] = PAD
labels = torch.randint(0, 2, (16,)).float()
model = Sentiment()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(4):
    loss = nn.functional.binary_cross_entropy_with_logits(model(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
