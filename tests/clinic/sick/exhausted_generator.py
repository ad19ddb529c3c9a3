"""LoRA training: the adapters have the values they were initialised with, only the head trains."""

import torch
from torch import nn

torch.manual_seed(0)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)  # <- GS307
        self.up = nn.Linear(rank, base.out_features, bias=False)  # <~ GS307

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            LoRALinear(nn.Linear(8, 8)), nn.GELU(), LoRALinear(nn.Linear(8, 8))
        )
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x))


model = Model()
lora_layers = filter(lambda p: p.requires_grad, model.body.parameters())
print("trainable:", sum(p.numel() for p in lora_layers), "adapter numbers")
optimizer = torch.optim.AdamW(  # <~ GS307
    [{"params": lora_layers, "lr": 1e-3}, {"params": model.head.parameters(), "lr": 1e-2}]
)
x, y = torch.randn(40, 8), torch.randint(0, 2, (40,))
for step in range(4):
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    model.zero_grad()
    print(step, round(loss.item(), 4))
