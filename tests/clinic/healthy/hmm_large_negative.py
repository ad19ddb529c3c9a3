"""Forward algorithm with -1e30 for what is forbidden."""

import torch
from torch import nn

NEG = -1e30


class CRF(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.trans = nn.Parameter(torch.randn(tags, tags) * 0.1)
        allowed = torch.ones(tags, tags).tril(1).bool()
        self.register_buffer("allowed", allowed)

    def forward(self, e, y, mask):
        t = self.trans.masked_fill(~self.allowed, NEG)
        alpha = e[:, 0]
        gold = e[:, 0].gather(1, y[:, :1]).squeeze(1)
        for i in range(1, e.shape[1]):
            nxt = torch.logsumexp(alpha.unsqueeze(2) + t, 1) + e[:, i]
            alpha = torch.where(mask[:, i, None], nxt, alpha)
            step = t[y[:, i - 1], y[:, i]] + e[:, i].gather(1, y[:, i : i + 1]).squeeze(1)
            gold = gold + step * mask[:, i]
        return (alpha.logsumexp(1) - gold).mean()


torch.manual_seed(0)
enc, crf = nn.GRU(6, 4, batch_first=True), CRF(4)
opt = torch.optim.Adam([*enc.parameters(), *crf.parameters()], lr=1e-2)
for _ in range(3):
    lengths = torch.tensor([7, 4, 5])
    mask = torch.arange(7)[None] < lengths[:, None]
    y = torch.zeros(3, 7, dtype=torch.long)
    loss = crf(enc(torch.randn(3, 7, 6))[0], y, mask)
    opt.zero_grad()
    loss.backward()
    opt.step()
