import torch
from torch import nn
import torch.nn.functional as F


class ResBlock(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.linear = nn.Linear(hidden, hidden)
        nn.init.zeros_(self.linear.weight)

    def forward(self, x):
        return x + F.silu(self.linear(x))


class DraftHeads(nn.Module):
    """Heads that guess the tokens after the next one from the state of a frozen model."""

    def __init__(self, base, hidden, vocab, num_heads=4):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.blocks = nn.ModuleList([ResBlock(hidden)] * num_heads)  # <- GS330
        self.outs = nn.ModuleList(nn.Linear(hidden, vocab, bias=False) for _ in range(num_heads))
        for out in self.outs:
            out.weight.data.copy_(base.lm_head.weight)

    def trainable(self):
        return [p for p in self.parameters() if p.requires_grad]

    def forward(self, ids):
        with torch.no_grad():
            h = self.base.features(ids)
        return torch.stack([out(block(h)) for block, out in zip(self.blocks, self.outs)])


def draft_loss(logits, ids, decay=0.9):
    """Head k (from 0) looks k + 2 tokens ahead."""
    total, parts = 0.0, []
    for k, head in enumerate(logits):
        shift = k + 2
        pred, target = head[:, 2:-shift], ids[:, 2 + shift :]
        part = F.cross_entropy(pred.reshape(-1, pred.shape[-1]), target.reshape(-1))
        total = total + decay**k * part
        parts.append(part.item())
    return total, parts
