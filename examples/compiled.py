"""A compiled network with a root at 0: which line is it?

gradscope doctor examples/compiled.py
gradscope doctor --eager examples/compiled.py
"""

import torch
from torch import nn


class Spread(nn.Module):
    # A layer of one output has no spread.
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.head = nn.Linear(1, 1)

    def forward(self, x):
        h = self.layer(x)
        around = h - h.mean(dim=1, keepdim=True)
        spread = around.square().sum(dim=1, keepdim=True).sqrt()
        return self.head(spread)


torch.manual_seed(0)
# A backend that needs no C++ compiler; the default one makes the same nodes.
net = torch.compile(Spread(), backend="aot_eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = (net(torch.randn(16, 4)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
