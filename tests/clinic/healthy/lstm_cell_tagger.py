"""One tag for a whole sentence, read word by word; what the last words say is enough."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self, words=50, width=32):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.cell = nn.LSTMCell(width, width)
        self.tag = nn.Linear(width, 7)

    def forward(self, sentences):
        hidden = state = sentences.new_zeros(len(sentences), 32, dtype=torch.float)
        for word in self.words(sentences).unbind(1):
            hidden, state = self.cell(word, (hidden, state))
        return self.tag(hidden)


tagger = Tagger()
optimizer = torch.optim.Adam(tagger.parameters(), lr=1e-2)
sentences, tags = torch.randint(50, (8, 200)), torch.randint(7, (8,))
for epoch in range(3):
    optimizer.zero_grad()
    loss = F.cross_entropy(tagger(sentences), tags)
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
