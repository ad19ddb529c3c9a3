"""What a training loop does between two backward calls, and what is said of it: edits that change
nothing, rates that somebody sets, models that are replaced, heads that are left out."""

from __future__ import annotations

import pytest

from gradscope.model.observations import Finding
from tests.looking import Session

HEAD = """import copy
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randint(3, (8,))
"""


def found(session: Session, text: str) -> list[Finding]:
    """The warnings and errors of a program."""
    report = session.look(HEAD + text, "-q", "--steps", "all", command="doctor")
    return [finding for finding in report.findings if finding.severity != "information"]


def told(session: Session, text: str) -> list[tuple[str, str]]:
    """Their rules, and the first lines of the program that they are at."""
    lines = (HEAD + text).splitlines()
    findings = found(session, text)
    assert all(one.location is not None for one in findings)
    return [(one.rule, lines[one.location.line - 1].strip()) for one in findings if one.location]


# ---------------------------------------------------------------- clipping of others

CLIPPED = """
net, other = nn.Linear(4, 3), nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_({what}.parameters(), 1.0)
    optimizer.step()
"""


@pytest.mark.parametrize("what", ["net", "other"])
def test_clipping_others_than_are_stepped_is_told(what: str, session: Session) -> None:
    findings = found(session, CLIPPED.format(what=what))
    assert [one.rule for one in findings] == ["GS506"] * (what == "other")
    for one in findings:
        assert "those of others waited for one" in one.evidence[0]
        assert one.remedy.startswith("Give it the parameters that the step changes")


# ---------------------------------------------------------------- gradients that nobody uses

ADDED = """
net, critic = nn.Linear(4, 3), nn.Linear(3, 1)
first = torch.optim.SGD(net.parameters(), lr=0.1)
second = torch.optim.SGD(critic.parameters(), lr=0.1)
def back(loss): loss.backward()
for step in range(5):
    {loop}
"""
BETWEEN = {
    "zeroed in each part": (
        "for part in x.split(4):\n        first.zero_grad()  # GS505\n"
        "        back(net(part).square().mean())\n    first.step()"
    ),
    "added up": (
        "first.zero_grad()\n    for part in x.split(4): back(net(part).square().mean())\n"
        "    first.step()"
    ),
    "what a critic gets from the loss of another": (
        "first.zero_grad(); back(critic(net(x)).mean()); first.step()\n"
        "    second.zero_grad(); back(critic(net(x).detach()).mean().square()); second.step()"
    ),
    "read before it goes": (
        "back(net(x).square().mean()); norm = net.weight.grad.norm(); first.zero_grad()\n"
        "    back(net(x + norm).square().mean()); first.step(); first.zero_grad()"
    ),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_gradients_that_are_dropped_between_two_steps(name: str, session: Session) -> None:
    text = ADDED.format(loop=BETWEEN[name])
    lines = [line.strip() for line in text.splitlines() if "# GS505" in line]
    assert told(session, text) == [("GS505", line) for line in lines]


# ---------------------------------------------------------------- models that are replaced

# Python gives the id of the first optimizer, which is gone, to a later one.
FITTED = """
def fit(model, optimizer):
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(5, 4)).pow(2).mean().backward()
        optimizer.step()
    return id(optimizer)
first, second = nn.Linear(4, 3), nn.Linear(4, 3)
address, others = fit(first, torch.optim.SGD(first.parameters(), lr=0.1)), []
for _ in range(1000):
    optimizer = torch.optim.SGD(second.parameters(), lr=0.1)
    if id(optimizer) == address:
        break
    others.append(optimizer)
assert id(optimizer) == address
fit(second, optimizer)
"""


def test_an_optimizer_in_the_place_of_one_that_is_gone(session: Session) -> None:
    report = session.look(HEAD + FITTED, "-q", command="doctor")
    assert report.findings == ()


# ---------------------------------------------------------------- heads that are left out

HEADED = """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 8))
    def forward(self, features):
        return F.linear(F.normalize(features), F.normalize(self.weight))
body = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.LayerNorm(8), nn.Tanh())
last, head = nn.Linear(8, 8), Head()
{before}
optimizer = torch.optim.SGD({held}, lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    features = last(body(x))
    {loss}.backward()
    optimizer.step()
"""
HELD = "[*body.parameters(), *last.parameters()]"
LOSS = "F.cross_entropy(head(features), y)"
NEAREST = "F.cross_entropy(-torch.cdist(features, head.weight), y)"
MADE = f"optimizer = torch.optim.SGD({HELD}, lr=0.1)"
MEANT = {
    "in eval mode": ("head.eval()", HELD, LOSS),
    "given other data as well": ("pass", HELD, "F.mse_loss(head(features), head(torch.ones(8)))"),
    "a layer before it": (
        "head = nn.Linear(8, 3); last.train()",
        "[*body.parameters(), *head.parameters()]",
        "F.cross_entropy(F.linear(features, head.weight), y)",
    ),
}


@pytest.mark.parametrize("loss", [LOSS, NEAREST])
def test_a_last_layer_that_is_left_out(loss: str, session: Session) -> None:
    assert told(session, HEADED.format(before="pass", held=HELD, loss=loss)) == [("GS307", MADE)]


@pytest.mark.parametrize("name", MEANT)
def test_a_last_layer_that_is_meant_to_stay(name: str, session: Session) -> None:
    before, held, loss = MEANT[name]
    text = HEADED.format(before=before, held=held, loss=loss)
    assert "nothing was copied into it" not in str(found(session, text))


# ---------------------------------------------------------------- what is dropped on purpose

LOOPS = """
def net():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
def loss(model):
    return F.cross_entropy(model(torch.randn(8, 4)), y)
def optimizer(model, kind=torch.optim.Adam, lr=0.01):
    return kind(model.parameters(), lr=lr)
def learn(model, optimizer, then=lambda: None):
    optimizer.zero_grad()
    loss(model).backward()
    then()
    optimizer.step()
SGD = torch.optim.SGD
"""
MODELS = """
other, read = (net() for _ in range(2))
fifth = SGD(read.parameters(), lr=0.1)
"""
CALM = """
def drop():
    for parameter in other[0].parameters():
        parameter.grad = None
    for parameter in other[2].parameters():
        parameter.grad = parameter.grad * 0.5
third = optimizer(other)
for step in range(12):
    learn(other, third, drop)
for epoch in range(3):
    best = None
    for step in range(4):
        tried = loss(read)
        best = tried if best is None or tried < best else best
    state = torch.zeros(())
    for step in range(4):
        state = state + loss(read)
        last = state * 2
    fifth.zero_grad()
    best.backward()
    last.backward()
    fifth.step()
"""


def test_nothing_is_told_of_what_is_dropped_on_purpose(session: Session) -> None:
    assert told(session, LOOPS + MODELS + CALM) == []
