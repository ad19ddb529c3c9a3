import math

import torch
import torch.nn.functional as F
from torch import nn


class LowRankLinear(nn.Module):
    """A frozen linear layer with a trainable low rank update that starts at zero."""

    def __init__(self, base, rank=4, alpha=8.0, dropout=0.05):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.dropout = nn.Dropout(dropout)
        self.scale = alpha / rank

    def forward(self, x):
        delta = F.linear(F.linear(self.dropout(x), self.down), self.up)
        return self.base(x) + self.scale * delta


def attach(module, names, rank):
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear) and name in names:
            setattr(module, name, LowRankLinear(child, rank))
        else:
            attach(child, names, rank)
    return module


class RoundedGate(torch.autograd.Function):
    """Hard 0/1 gate whose gradient is passed only where the input is near the threshold."""

    @staticmethod
    def forward(ctx, logits):
        ctx.save_for_backward(logits)
        return (logits > 0).to(logits.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (logits,) = ctx.saved_tensors
        return grad_output * (logits.abs() < 1.0).to(grad_output.dtype)
