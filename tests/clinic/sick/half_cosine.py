"""Matches captions to clips by the cosine of their vectors; captions are padded with zeros."""

import torch
import torch.nn.functional as F
from torch import nn


class Matcher(nn.Module):
    def __init__(self, words=12, clips=10, dim=16):
        super().__init__()
        self.words = nn.Linear(words, dim, bias=False)
        self.clips = nn.Linear(clips, dim)

    def forward(self, words, clips):
        words = self.words(words)
        length = words.norm(dim=-1, keepdim=True)
        length = length.clamp(min=1e-9)  # <- GS101
        words = words / length
        return words @ F.normalize(self.clips(clips), dim=-1).unsqueeze(-1)


def main():
    torch.manual_seed(0)
    model = Matcher().half()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for step in range(6):
        words = torch.randn(8, 5, 12)
        words[:, 4] = 0
        clips = torch.randn(8, 10)
        scores = model(words.half(), clips.half()).float().mean((1, 2))
        loss = F.softplus(-scores).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
