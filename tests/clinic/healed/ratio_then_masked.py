"""Healed. Where the target is 0 the divisor is 1."""

import torch

gen = torch.Generator().manual_seed(9)


def relative_error(pred, truth):
    ratio = (pred - truth) / truth.masked_fill(truth == 0, 1.0)
    ratio[truth == 0] = 0
    return ratio.abs().mean()


net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.SiLU(), torch.nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x = torch.randn(100, 3, generator=gen)
y = torch.relu(x.sum(1, keepdim=True))
for epoch in range(3):
    opt.zero_grad()
    err = relative_error(net(x), y)
    err.backward()
    opt.step()
    print(f"epoch {epoch} error {err.item():.3f}")
