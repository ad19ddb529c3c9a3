"""A pyramid of residual blocks that was once trained layer by layer: the `detach` stayed."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x):
        hidden = F.gelu(self.widen(self.norm(x)))
        return x + self.narrow(hidden)


class Encoder(nn.Module):
    def __init__(self, width=16, depth=5):
        super().__init__()
        self.stem = nn.Linear(6, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x).detach()  # <- GS303
        return self.head(x)


model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs, labels = torch.randn(64, 6), torch.randint(0, 3, (64,))
for start in range(0, 64, 16):
    loss = F.cross_entropy(model(inputs[start : start + 16]), labels[start : start + 16])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
