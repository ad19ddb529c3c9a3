"""Two ways to define the same weight train differently: one of them never changes."""

import torch
from torch import nn

torch.manual_seed(42)


def init_weight(*shape, device="cpu", dtype=torch.float64):
    para = nn.Parameter(torch.zeros(shape), requires_grad=True).to(device, dtype)  # <- GS307
    with torch.no_grad():
        nn.init.xavier_normal_(para)
    return para


class Recurrent(nn.Module):
    def __init__(self, n=5):
        super().__init__()
        self.wh = init_weight(n, n)  # <~ GS307
        self.inp = nn.Linear(3, n).double()
        self.out = nn.Linear(n, 1).double()

    def forward(self, xs):
        h = xs.new_zeros(xs.shape[0], 5)
        for x in xs.unbind(1):
            h = torch.tanh(self.inp(x) + h @ self.wh)
        return self.out(h)


net = Recurrent()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
xs, ys = torch.randn(30, 4, 3).double(), torch.randn(30, 1).double()
before = net.wh.clone()
for _ in range(4):
    opt.zero_grad()
    loss = (net(xs) - ys).square().mean()
    loss.backward()
    opt.step()
print("loss", loss.item(), "wh moved by", (net.wh - before).abs().max().item())
