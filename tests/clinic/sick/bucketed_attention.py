"""Windowed attention with padding; the loss is finite, the gradients are not."""

import torch
from torch import nn


class LocalEncoder(nn.Module):
    def __init__(self, d=8, window=2):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, 2, batch_first=True)
        self.ff = nn.Linear(d, d)
        self.window = window

    def band(self, n):
        i = torch.arange(n)
        dist = i[:, None] - i[None, :]
        return ~((dist >= 0) & (dist < self.window))

    def forward(self, x, padding):
        y, _ = self.attn(  # <- GS101
            x, x, x, key_padding_mask=padding, attn_mask=self.band(x.shape[1])
        )
        return self.ff(y)


torch.manual_seed(0)
enc = LocalEncoder()
opt = torch.optim.Adam(enc.parameters())
x = torch.randn(3, 6, 8)
lengths = torch.tensor([6, 5, 3])
padding = torch.arange(6)[None] >= lengths[:, None]
for step in range(3):
    out = enc(x, padding)
    valid = out[~padding]
    loss = (valid - x[~padding]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
