"""LoRA injected in place of linear layers, B = 0, base frozen."""

import math

import torch
import torch.nn as nn


class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.empty(r, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scaling = alpha / r
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return self.base(x) + (self.drop(x) @ self.A.T @ self.B.T) * self.scaling


def inject(module):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, LoRALinear(child))
        else:
            inject(child)


torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(16, 32),
    nn.GELU(),
    nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32)),
    nn.GELU(),
    nn.Linear(32, 4),
)
for p in model.parameters():
    p.requires_grad = False
inject(model)
trainable = [p for p in model.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=1e-3)
for _ in range(4):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(0, 4, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
