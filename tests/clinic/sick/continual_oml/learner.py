import torch
import torch.nn.functional as F
from torch import nn


class Representation(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )

    def forward(self, x):
        return self.net(x)


class MetaLearner(nn.Module):
    """Slow representation weights and a fast head that is adapted online."""

    def __init__(self, inputs=10, hidden=32, classes=5, inner_lr=0.4, meta_lr=3e-3):
        super().__init__()
        self.slow = Representation(inputs, hidden)
        self.head_weight = nn.Parameter(0.1 * torch.randn(classes, hidden))
        self.head_bias = nn.Parameter(torch.zeros(classes))
        self.inner_lr = inner_lr
        self.optimizer = torch.optim.Adam(self.parameters(), lr=meta_lr)

    def logits(self, x, fast):
        weight, bias = fast
        return F.linear(self.slow(x), weight, bias)

    def adapt(self, x, y, fast):
        loss = F.cross_entropy(self.logits(x, fast), y)
        grads = torch.autograd.grad(loss, fast)  # <- GS000
        return [p - self.inner_lr * g for p, g in zip(fast, grads, strict=True)]

    def meta_step(self, trajectory, x_meta, y_meta):
        fast = [self.head_weight, self.head_bias]
        for x, y in trajectory:
            fast = self.adapt(x, y, fast)
        loss = F.cross_entropy(self.logits(x_meta, fast), y_meta)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()
