import torch
from torch import nn


class ReviewModel(nn.Module):
    def __init__(self, vocab=60, dim=24, hidden=32):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.hidden = nn.Linear(dim, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, words):
        return self.score(torch.relu(self.hidden(self.embed(words)))).squeeze(-1)


class Reviews:
    """Ratings between 0 and 100; a few of them were typed with a slip of the finger."""

    def __init__(self, n, vocab=60, length=10, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.words = torch.randint(vocab, (n, length), generator=generator)
        value = torch.linspace(-1, 1, vocab)
        self.ratings = 50 + 90 * value[self.words].mean(dim=1)
        slips = torch.rand(n, generator=generator) < 0.03
        self.ratings = torch.where(slips, 10 * self.ratings, self.ratings) / 50

    def batches(self, size):
        order = torch.randperm(len(self.words))
        for rows in order.split(size):
            yield self.words[rows], self.ratings[rows]
