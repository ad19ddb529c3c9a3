"""Focal loss with gamma 0.5."""

import torch
import torch.nn as nn
import torch.optim as optim


class BinaryFocalLoss(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0, eps=1e-8):
        super().__init__()
        self.alpha, self.gamma, self.eps = alpha, gamma, eps

    def forward(self, logits, target):
        probs = torch.sigmoid(logits)
        pos = (
            -self.alpha
            * torch.pow(1.0 - probs, self.gamma)  # <- GS102
            * target
            * torch.log(probs + self.eps)
        )
        neg = (
            -(1 - self.alpha)
            * torch.pow(probs, self.gamma)
            * (1.0 - target)
            * torch.log(1.0 - probs + self.eps)
        )
        return (pos + neg).mean()


torch.manual_seed(3)
detector = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
detector[-1].weight.data.mul_(40)
criterion = BinaryFocalLoss(gamma=0.5)
optimizer = optim.SGD(detector.parameters(), lr=0.01)

x = torch.randn(64, 8) * 10
y = (x.sum(1, keepdim=True) > 0).float()
for it in range(3):
    out = detector(x)
    loss = criterion(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{it}: {loss.item():.4f}")
