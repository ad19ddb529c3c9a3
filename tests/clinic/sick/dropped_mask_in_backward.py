"""backward of a dropout Function uses a mask that forward keeps in one of its branches only."""

import torch
from torch import nn

torch.manual_seed(0)


class WordDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):
        ctx.p = p
        if p < 0.05:
            return x.clone()
        ctx.mask = (torch.rand((*x.shape[:-1], 1)) > p).to(x.dtype) / (1 - p)
        return x * ctx.mask

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.mask, None


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 8)
        self.rnn = nn.GRU(8, 16, batch_first=True)
        self.out = nn.Linear(16, 30)

    def forward(self, words, p):
        vectors = WordDropout.apply(self.embedding(words), p)  # <- GS410
        return self.out(self.rnn(vectors)[0])


reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=1e-2)
for step in range(10):
    words = torch.randint(0, 30, (4, 7))
    p = 0.3 * (1 - step / 9)  # annealed to nothing
    scores = reader(words[:, :-1], p)
    loss = nn.functional.cross_entropy(scores.transpose(1, 2), words[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
