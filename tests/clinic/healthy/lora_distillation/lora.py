import math

import torch
import torch.nn as nn


class LoRALinear(nn.Module):
    """Frozen dense layer plus a trainable low-rank correction that starts at zero."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.scale = alpha / rank
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.t() @ self.up.t())

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.scale * self.up @ self.down
        return self.base


def inject(model, rank=4, alpha=8.0, skip=("head",)):
    for p in model.parameters():
        p.requires_grad_(False)
    for name, module in list(model.named_children()):
        if isinstance(module, nn.Linear) and name not in skip:
            setattr(model, name, LoRALinear(module, rank, alpha))
    return [p for p in model.parameters() if p.requires_grad]


def merge_all(model):
    for name, module in list(model.named_children()):
        if isinstance(module, LoRALinear):
            setattr(model, name, module.merge())
    return model
