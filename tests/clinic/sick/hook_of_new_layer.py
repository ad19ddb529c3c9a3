"""A hook that keeps running means of gradient norms meets a layer that it has no entry for."""

import torch
from torch import nn

torch.manual_seed(0)


class GradientMeter:
    def __init__(self, names):
        self.means = dict.fromkeys(names, 0.0)

    def watch(self, name, result):
        def update(grad):
            self.means[name] = 0.9 * self.means[name] + 0.1 * grad.norm().item()

        result.register_hook(update)  # <- GS410
        return result


class Encoder(nn.Module):
    def __init__(self, meter):
        super().__init__()
        self.meter = meter
        self.first, self.second = nn.Linear(6, 12), nn.Linear(12, 12)
        self.gate = nn.Linear(12, 12)
        self.head = nn.Linear(12, 1)

    def forward(self, x, gated):
        x = self.meter.watch("first", self.first(x).relu())
        x = self.meter.watch("second", self.second(x).relu())
        if gated:
            x = self.meter.watch("gate", x * self.gate(x).sigmoid())
        return self.head(x)


net = Encoder(GradientMeter(["first", "second"]))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(12):
    x, y = torch.randn(16, 6), torch.randn(16, 1)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x, gated=epoch >= 8), y)
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
