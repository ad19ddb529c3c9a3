"""An ablation of the encoder's gradient that was never taken out: only the head learns."""

import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self, keep=0.0):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.Tanh())
        self.head = nn.Linear(16, 2)
        self.keep = keep

    def forward(self, x):
        h = self.encoder(x)
        if h.requires_grad:
            h.register_hook(lambda grad: self.keep * grad)  # <- GS504
        return self.head(h)


x = torch.randn(40, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
