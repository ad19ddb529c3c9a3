"""A BIO tagger: padded self-attention below, a CRF with forbidden transitions above."""

import torch
import torch.nn.functional as F
from torch import nn

OUTSIDE, BEGIN, INSIDE = 0, 1, 2


class MaskedAttention(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x, mask):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (w // self.heads) ** 0.5
        scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
        mixed = scores.softmax(dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(b, t, w))


class CRF(nn.Module):
    def __init__(self, tags=3):
        super().__init__()
        self.transition = nn.Parameter(torch.zeros(tags, tags))
        self.start = nn.Parameter(torch.zeros(tags))
        self.end = nn.Parameter(torch.zeros(tags))
        forbidden = torch.zeros(tags, tags, dtype=torch.bool)
        forbidden[OUTSIDE, INSIDE] = True
        self.register_buffer("forbidden", forbidden)
        self.register_buffer("bad_start", torch.arange(tags) == INSIDE)

    def scores(self):
        transition = self.transition.masked_fill(self.forbidden, float("-inf"))
        return transition, self.start.masked_fill(self.bad_start, float("-inf"))

    def log_partition(self, emissions, mask):
        transition, start = self.scores()
        alpha = start + emissions[:, 0]
        for t in range(1, emissions.shape[1]):
            step = torch.logsumexp(alpha.unsqueeze(2) + transition, dim=1) + emissions[:, t]
            alpha = torch.where(mask[:, t].unsqueeze(1), step, alpha)
        return torch.logsumexp(alpha + self.end, dim=1)

    def path_score(self, emissions, tags, mask):
        transition, start = self.scores()
        chosen = emissions.gather(2, tags.unsqueeze(2)).squeeze(2) * mask
        steps = transition[tags[:, :-1], tags[:, 1:]]
        steps = torch.where(mask[:, 1:], steps, torch.zeros_like(steps))
        last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
        return start[tags[:, 0]] + chosen.sum(1) + steps.sum(1) + self.end[last]

    def forward(self, emissions, tags, mask):
        score = self.path_score(emissions, tags, mask)
        return (self.log_partition(emissions, mask) - score).mean()

    @torch.no_grad()
    def decode(self, emissions, length):
        transition, start = self.scores()
        alpha, pointers = start + emissions[0], []
        for t in range(1, length):
            best, index = (alpha.unsqueeze(1) + transition).max(dim=0)
            alpha = best + emissions[t]
            pointers.append(index)
        path = [int((alpha + self.end).argmax())]
        for index in reversed(pointers):
            path.append(int(index[path[-1]]))
        return path[::-1]


class Tagger(nn.Module):
    def __init__(self, vocab=30, width=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.local = nn.Conv1d(width, width, 3, padding=1)
        self.attention = MaskedAttention(width)
        self.emit = nn.Linear(width, 3)
        self.crf = CRF()

    def emissions(self, words):
        mask = words != 0
        x = self.embed(words)
        x = x + F.relu(self.local(x.transpose(1, 2)).transpose(1, 2))
        return self.emit(x + self.attention(x, mask)), mask

    def forward(self, words, tags):
        emissions, mask = self.emissions(words)
        return self.crf(emissions, tags, mask)


def sentences(n, length=9):
    """Words from 20 on open a span, words from 15 to 19 right behind a span go on with it."""
    words = torch.randint(1, 30, (n, length))
    tags = torch.zeros(n, length, dtype=torch.long)
    for t in range(length):
        opens = words[:, t] >= 20
        goes_on = (words[:, t] >= 15) & ~opens
        if t > 0:
            tags[goes_on & (tags[:, t - 1] != OUTSIDE), t] = INSIDE
        tags[opens, t] = BEGIN
    padded = torch.arange(length) >= torch.randint(3, length + 1, (n, 1))
    return words.masked_fill(padded, 0), tags.masked_fill(padded, INSIDE)


def main():
    torch.manual_seed(0)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(30):
        words, tags = sentences(32)
        optimizer.zero_grad()
        loss = model(words, tags)
        loss.backward()
        optimizer.step()
        if step % 7 == 0:
            print(f"step {step} negative log-likelihood {loss.item():.3f}")
    words, tags = sentences(40)
    with torch.no_grad():
        emissions, mask = model.emissions(words)
    right = 0
    for row, gold, length in zip(emissions, tags, mask.sum(1).tolist(), strict=True):
        right += sum(a == b for a, b in zip(model.crf.decode(row, length), gold, strict=False))
    print(f"tags right {int(right) / int(mask.sum()):.2f}")


if __name__ == "__main__":
    main()
