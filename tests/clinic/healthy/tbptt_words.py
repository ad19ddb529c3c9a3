"""Truncated back-propagation through time for a word model with a state carried over chunks."""

import torch
import torch.nn.functional as F
from torch import nn


class WordModel(nn.Module):
    def __init__(self, vocab=30, dim=24, layers=2, drop=0.1):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, layers, dropout=drop, batch_first=True)
        self.out = nn.Linear(dim, vocab)
        self.out.weight = self.embed.weight
        self.h0 = nn.Parameter(torch.zeros(layers, 1, dim))
        self.c0 = nn.Parameter(torch.zeros(layers, 1, dim))

    def initial(self, batch):
        return (
            self.h0.expand(-1, batch, -1).contiguous(),
            self.c0.expand(-1, batch, -1).contiguous(),
        )

    def forward(self, tokens, state):
        y, state = self.rnn(self.embed(tokens), state)
        return self.out(y), y, state


def make_stream(length=1200, vocab=30):
    stream, token = [], 1
    noise = torch.rand(length)
    jumps = torch.randint(0, vocab, (length,))
    for i in range(length):
        token = int(jumps[i]) if noise[i] < 0.1 else (2 * token + 1) % vocab
        stream.append(token)
    return torch.tensor(stream)


def detach_state(state):
    return tuple(s.detach() for s in state)


def train(chunk=12, batch=8, passes=2):
    torch.manual_seed(16)
    stream = make_stream()
    columns = len(stream) // batch
    data = stream[: columns * batch].view(batch, columns)
    model = WordModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    for epoch in range(passes):
        state, losses, previous = model.initial(batch), [], None
        for start in range(0, columns - 1, chunk):
            width = min(chunk, columns - 1 - start)
            x = data[:, start : start + width]
            y = data[:, start + 1 : start + 1 + width]
            logits, hidden, state = model(x, state)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            objective = loss + 0.01 * hidden.square().mean()
            if previous is not None:
                objective = objective + 0.01 * (hidden[:, 0] - previous).square().mean()
            optimizer.zero_grad()
            objective.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            state = detach_state(state)
            previous = hidden[:, -1].detach()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    train()
