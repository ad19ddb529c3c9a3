"""Few-shot translator: a second forward before backward, "[65] is at version 3; expected 2"."""

import torch
from torch import nn

torch.manual_seed(0)


class ConvBN(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv1d(cin, cout, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm1d(cout, momentum=0.03)
        self.act = nn.SiLU()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))  # <- GS401


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(ConvBN(1, 6), ConvBN(6, 6), nn.Conv1d(6, 1, 1))


def step(model, optimizer, real, noisy):
    model.eval()
    stable = model(real)  # <~ GS401
    model.train()
    rough = model(noisy)  # <~ GS401
    loss = (stable - real).abs().mean() + (rough - real).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


model = Net()
optimizer = torch.optim.Adam(model.parameters())
for i in range(3):
    signal = torch.randn(4, 1, 20)
    print(i, step(model, optimizer, signal, signal + 0.1 * torch.randn_like(signal)))
