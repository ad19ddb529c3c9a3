"""Residual weights start at 0, bfloat16 autocast, padding."""

import torch
from torch import nn


class ReZero(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.ReLU(), nn.Linear(4 * d, d))
        self.alpha = nn.Parameter(torch.zeros(1))

    def forward(self, x, pad):
        x = x + self.alpha * self.attn(x, x, x, key_padding_mask=pad, need_weights=False)[0]
        return x + self.alpha * self.mlp(x)


class Seq2Label(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 32, padding_idx=0)
        self.layers = nn.ModuleList([ReZero(32) for _ in range(4)])
        self.out = nn.Linear(32, 3)

    def forward(self, ids):
        pad = ids == 0
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x, pad)
        keep = (~pad).unsqueeze(-1)
        return self.out((x * keep).sum(1) / keep.sum(1))


torch.manual_seed(0)
net = Seq2Label()
opt = torch.optim.AdamW(
    [
        {
            "params": [p for n, p in net.named_parameters() if n.endswith("alpha")],
            "lr": 1e-2,
            "weight_decay": 0,
        },
        {"params": [p for n, p in net.named_parameters() if not n.endswith("alpha")], "lr": 1e-3},
    ]
)
for _ in range(4):
    ids = torch.randint(1, 50, (8, 12))
    ids[2:, 7:] = 0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(net(ids), torch.randint(0, 3, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
