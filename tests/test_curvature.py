"""Second derivatives of networks that are made of straight pieces."""

from __future__ import annotations

import pytest

from tests.looking import Session

TEXT = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 8), {activation}, nn.Linear(8, 8), {activation}, nn.Linear(8, 1))
rate, last = nn.Parameter(torch.ones(1)), nn.Linear(1, 1)
def slope(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]
x = torch.randn(16, 1, requires_grad=True)
u = net(x)
({loss}).square().mean().backward()
"""
SECOND = "slope(slope(u, x), x)"

TOLD = {
    ("nn.ReLU()", f"slope(u, x) - rate * {SECOND}"): f"rate * {SECOND}",
    ("nn.LeakyReLU()", f"slope(u, x) - 0.1 * {SECOND}"): f"0.1 * {SECOND}",
    ("nn.Hardtanh(-3, 3)", f"u - {SECOND}"): f"u - {SECOND}",
    ("nn.Hardshrink(0.1)", f"u - {SECOND}[:, 0]"): f"{SECOND}[:, 0]",
    # Only the second derivative is zero, and only of straight pieces.
    ("nn.ReLU()", "slope(u, x) - rate"): "",
    ("nn.Tanh()", f"slope(u, x) - rate * {SECOND}"): "",
    ("nn.ReLU()", "u - slope(slope(u * x, x), x)"): "",
    ("nn.ReLU()", "u - slope(slope(u, x).square(), net[2].weight).sum()"): "",
    # The derivative is not zero, only its own is; nothing learns from it.
    ("nn.ReLU()", "u + slope(torch.relu(last(x) + 9).sum(), last.bias)"): "",
    # What is zero for these numbers only.
    ("nn.ReLU()", "u + rate * slope(torch.relu(last(x) - 99), x)"): "",
}


@pytest.mark.parametrize(("activation", "loss"), TOLD)
def test_second_derivative(activation: str, loss: str, session: Session) -> None:
    text = TEXT.format(activation=activation, loss=loss).lstrip("\n")
    report = session.look(text, "-q", command="doctor")
    told = [one for one in report.findings if "second derivative" in one.message]
    where = [one.location.expression if one.location else "" for one in told]
    assert where == ([TOLD[activation, loss]] if TOLD[activation, loss] else [])
    learnt = any("multiplied with: rate" in line for one in told for line in one.evidence)
    assert learnt == (bool(told) and "rate" in loss)
