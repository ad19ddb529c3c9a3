"""What the doctor says of programs that it once said too much of: nothing where nothing is wrong,
and one finding where one line is the cause."""

from __future__ import annotations

import pytest

from tests.looking import Session

HEAD = """
import io
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
"""

STEPS_BY_HAND = """
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x, y = torch.randn(16, 4), torch.randn(16, 1)
for epoch in range(3):
    for batch in range(2):
        model.zero_grad()
        F.mse_loss(model(x), y).backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.1)
    best = io.BytesIO()
    torch.save(model, best)
    best.seek(0)
{then}
with torch.no_grad():
    print(F.mse_loss(model(x), y).item())
"""

POINT_MASS = """
class PointMass:
    def __init__(self, at): self.at = at
    def log_prob(self, x): return {log_prob}
mean, at = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
optimizer = torch.optim.Adam([mean, at])
for step in range(6):
    z = PointMass(at).at
    own = torch.distributions.Normal(mean, 1.0).log_prob(z).sum()
    loss = PointMass(at).log_prob(z).sum() - own
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

ADAPTED = """
class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.down, self.up = base, nn.Linear(8, 2), nn.Linear(2, 8)
        nn.init.zeros_(self.up.weight)
    def forward(self, x): return self.base(x) + self.up(self.down(x))
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8)
        self.v = nn.Linear(8, 8)
    def forward(self, x):
        return x + torch.softmax(self.q(x) @ self.k(x).T, -1) @ self.v(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = Block()
    def forward(self, x): return self.second(self.first(x)).mean(0)
net = Net()
net.requires_grad_(False)
for block in (net.first, net.second):
    for name in "qkv":
        setattr(block, name, Adapter(getattr(block, name)))
optimizer = torch.optim.AdamW(net.parameters())
for step in range(4):
    loss = net(torch.randn(5, 8)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PROGRAMS = {
    "steps by hand, and the best model loaded": (
        STEPS_BY_HAND.format(then="model = torch.load(best, weights_only=False)"),
        [],
    ),
    "steps by hand, and a copy": (
        STEPS_BY_HAND.format(then="import copy\nmodel = copy.deepcopy(model)"),
        [],
    ),
    "the density of a point mass at its point": (
        POINT_MASS.format(log_prob="(x == self.at).float().log()"),
        [],
    ),
    "a comparison that adds something": (
        POINT_MASS.format(log_prob="(x == self.at).float()"),
        [("GS303", "warning", "at")],
    ),
    "a frozen network under adapters": (
        ADAPTED,
        [("GS305", "information", "first.q.base, first.k.base, first.v.base and 3 more")],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_finding_a_cause(name: str, session: Session) -> None:
    program, expected = PROGRAMS[name]
    report = session.look(HEAD + program, "-q", command="doctor")
    assert [(one.rule, one.severity, one.subject) for one in report.findings] == expected
