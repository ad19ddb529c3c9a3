"""A lookahead wrapper around Adam that pulls the weights back every few steps."""

from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn


class Lookahead(torch.optim.Optimizer):
    def __init__(self, base, k=4, alpha=0.5):
        self.base, self.k, self.alpha = base, k, alpha
        self.defaults = base.defaults
        self.param_groups = base.param_groups
        self.state = defaultdict(dict)
        self.counter = 0
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["slow"] = p.data.clone()

    def zero_grad(self, set_to_none=True):
        self.base.zero_grad(set_to_none)

    def step(self, closure=None):
        loss = self.base.step(closure)
        self.counter += 1
        if self.counter % self.k == 0:
            for group in self.param_groups:
                for p in group["params"]:
                    slow = self.state[p]["slow"]
                    slow += self.alpha * (p.data - slow)
                    p.data.copy_(slow)
        return loss


class TextNet(nn.Module):
    def __init__(self, words=40, width=12, classes=3):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.conv = nn.Conv1d(width, 16, 3, padding=1)
        self.norm = nn.GroupNorm(2, 16)
        self.out = nn.Linear(16, classes)

    def forward(self, tokens):
        h = self.conv(self.embed(tokens).transpose(1, 2))
        return self.out(torch.relu(self.norm(h)).amax(-1))


def sentences(count, generator):
    tokens = torch.randint(4, 40, (count, 9), generator=generator)
    label = torch.randint(0, 3, (count,), generator=generator)
    tokens[torch.arange(count), torch.randint(0, 6, (count,), generator=generator)] = label + 1
    tokens[:, 7:] = 0
    return tokens, label


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    net = TextNet()
    optimizer = Lookahead(torch.optim.Adam(net.parameters(), lr=1e-2))
    for step in range(20):
        tokens, label = sentences(32, generator)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(tokens), label)
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            print(f"step {step + 1} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
