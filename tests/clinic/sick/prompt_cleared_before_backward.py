"""Prompt tuning under checkpoints: the loss is flat, and every prompt keeps its first value."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class PromptedLayer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mix = nn.Linear(size, size)
        self.prompts = nn.Parameter(0.1 * torch.randn(3, size))
        self.task = None

    def forward(self, x):
        if self.task is not None:
            x = x + self.prompts[self.task].unsqueeze(1)
        return x + torch.tanh(self.mix(x))


class Model(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.layers = nn.ModuleList(PromptedLayer(size) for _ in range(3))
        self.head = nn.Linear(size, 2)
        self.requires_grad_(False)
        for layer in self.layers:
            layer.prompts.requires_grad_(True)

    def select(self, task):
        for layer in self.layers:
            layer.task = task

    def forward(self, x, task):
        self.select(task)
        x = x.requires_grad_(True)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=True)  # <- GS303
        self.select(None)
        return self.head(x.mean(1))


model = Model()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for step in range(6):
    task = torch.randint(3, (12,))
    x = torch.randn(12, 5, 8)
    label = (x.mean((1, 2)) + task - 1 > 0).long()
    loss = F.cross_entropy(model(x, task), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
