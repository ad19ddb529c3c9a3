"""Programs where several lines could be blamed: the one that is at fault is."""

from __future__ import annotations

import pytest

from tests.looking import Session, marked

HEAD = """import copy
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randint(3, (32,))
def train(model, steps=6):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


# Zeros that stand for the gradient that there is not.
ZEROS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)
    def forward(self, x):
        h = self.body(x).detach()  # <- GS303
        return self.head(h)
model = Net()
weights = list(model.parameters())
optimizer = torch.optim.Adam(weights)
for step in range(6):
    grads = torch.autograd.grad(F.cross_entropy(model(x), y), weights, allow_unused=True)
    for p, g in zip(weights, grads):
        p.grad = torch.zeros_like(p) if g is None else 0.5 * g
    optimizer.step()
"""

# The loss is made anew of its number.
ANEW = """
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    out = net(x)
    loss = (out - 0.9 * out.detach()).square().mean()
    loss = torch.tensor(loss.item(), requires_grad=True)  # <- GS303
    loss.backward()
    optimizer.step()
"""

# Between the two steps of the critic comes what the generator's loss adds, and no step.
ADDED = """
generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
one, two = (torch.optim.Adam(net.parameters()) for net in (generator, critic))
for step in range(6):
    fake = generator(torch.randn(8, 2))
    wrong = (F.softplus(critic(fake.detach())) + F.softplus(-critic(x[:8]))).mean()
    wrong.backward()  # <- GS501
    two.step()
    one.zero_grad()
    F.softplus(-critic(fake)).mean().backward()
    one.step()
"""

# What torch complains of is changed by a step, and carried over from the one before.
CARRIED = """
cell, head = nn.GRU(4, 8), nn.Linear(8, 3)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
state = torch.zeros(1, 8)
for step in range(3):
    out, state = cell(x, state)  # <- GS401
    optimizer.zero_grad()
    F.cross_entropy(head(out), y).backward(retain_graph=True)
    optimizer.step()
"""

QUEUED = """
queries, keys = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8)), nn.Linear(4, 8)
optimizer = torch.optim.Adam([*queries.parameters(), *keys.parameters()])
queue = torch.zeros(8, 0)
for step in range(3):
    key = keys(torch.tanh(queries[0](x)[:, :4])).T  # <- GS401
    logits = queries(x) @ torch.cat([key, queue], 1)
    optimizer.zero_grad()
    F.cross_entropy(logits, torch.arange(32)).backward(retain_graph=True)
    optimizer.step()
    queue = torch.cat([queue, key], 1)
"""


# A hook that takes a part away, of a gradient that is a sum.
HALVED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.one, self.two = nn.Linear(8, 3), nn.Linear(8, 3)
    def forward(self, x):
        h = self.body(x).tanh()
        if h.requires_grad:
            h.register_hook(lambda gradient: gradient * 0.5)
        return self.one(h) + self.two(h)
train(Net())
"""

# Gradients that are computed by hand may be zeros: the clients have not trained the first layer.
SERVED = """
server = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
outer = torch.optim.SGD(server.parameters(), 1.0, momentum=0.9)
for round in range(3):
    client = copy.deepcopy(server)
    client[0].requires_grad_(False)
    inner = torch.optim.SGD(client[2].parameters(), 0.1)
    for step in range(2):
        inner.zero_grad()
        F.cross_entropy(client(x), y).backward()
        inner.step()
    outer.zero_grad()
    with torch.no_grad():
        for p, q in zip(server.parameters(), client.parameters()):
            p.grad = p - q
    outer.step()
"""


@pytest.mark.parametrize("text", [ZEROS, ANEW, ADDED, CARRIED, QUEUED, HALVED, SERVED])
def test_the_line_at_fault_is_told_where_there_is_one(text: str, session: Session) -> None:
    assert session.warned(HEAD + text) == marked(HEAD + text)


# Weights of the terms that nobody learns; a point that only derivatives are taken by.
UNLEARNED = """
model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
weights = [torch.zeros(1, requires_grad=True) for _ in range(2)]  # here
at = torch.ones(4, requires_grad=True)
for step in range(4):
    (slope,) = torch.autograd.grad(model(at).sum(), at, create_graph=True)
    one, two = F.cross_entropy(model(x), y), slope.square().sum() + model(at).mean()
    loss = (one * torch.exp(-weights[0]) + two * torch.exp(-weights[1]) + sum(weights)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


USES = ["", "    print({}.grad)\n", "    {}.data.sub_({}.grad, alpha=0.1)\n"]


@pytest.mark.parametrize("used", USES)
def test_a_tensor_that_nothing_learns_is_mentioned(used: str, session: Session) -> None:
    text = HEAD + UNLEARNED + "".join(used.replace("{}", f"weights[{at}]") for at in (0, 1))
    report = session.look(text, "-q", command="doctor")
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "# here" in line)
    told = [(one.rule, one.severity, one.location and one.location.line) for one in report.findings]
    assert told == ([] if used else [("GS307", "information", line)])
