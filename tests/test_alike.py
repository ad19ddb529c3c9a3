"""Layers whose units are all alike: which are told, at which line, and which are left alone."""

from __future__ import annotations

import pytest

from tests.looking import Session

PROGRAM = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 3)
images, maps = torch.randn(4, 3, 6, 6), torch.randn(4, 1, 6, 6)
ids = torch.arange(8).repeat(2)
def fit(forward, *learned, steps=4):
    optimizer = torch.optim.SGD(learned, lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        forward().square().mean().backward()
        optimizer.step()
def flat(layer):
    nn.init.constant_(layer.weight, 0.2)
    return layer
{lines}
"""

NETWORK = "a, b = nn.Linear(4, 8, bias=False), nn.Linear(8, 1, bias=False); "
TOLD: dict[str, list[tuple[str, str]]] = {
    NETWORK + "flat(a); flat(b); fit(lambda: b(a(x).tanh()) - y[:, :1], a.weight, b.weight)": [
        ("a.weight", "nn.init.constant_(layer.weight, 0.2)")
    ],
    NETWORK + "a.weight.data.fill_(0.1); flat(b)\n"
    "fit(lambda: b(a(x).tanh()) - y[:, :1], a.weight, b.weight)": [
        ("a.weight", "a.weight.data.fill_(0.1)")
    ],
    "w = torch.full((4, 8), 0.1, requires_grad=True)\n"
    "v = torch.full((8, 1), 0.1, requires_grad=True)\n"
    "fit(lambda: (x @ w).tanh() @ v - y[:, :1], w, v)": [
        ("w", "torch.full((4, 8), 0.1, requires_grad=True)")
    ],
    "a, b = flat(nn.Conv2d(3, 4, 3, padding=1, bias=False)), flat(nn.Conv2d(4, 1, 1))\n"
    "fit(lambda: b(a(images).tanh()) - maps, a.weight, b.weight)": [
        ("a.weight", "nn.init.constant_(layer.weight, 0.2)")
    ],
    "a = flat(nn.ConvTranspose2d(3, 4, 3, padding=1, bias=False)); b = flat(nn.Conv2d(4, 1, 1))\n"
    "fit(lambda: b(a(images).tanh()) - maps, a.weight, b.weight)": [
        ("a.weight", "nn.init.constant_(layer.weight, 0.2)")
    ],
    # How a processor adds up: equal units part in the last digits, others are apart.
    NETWORK + "flat(a); flat(b)\n"
    "a.weight.data.mul_(1 + 9e-6 * torch.rand(8, 4))\n"
    "fit(lambda: b(a(x).tanh()) - y[:, :1], a.weight, b.weight)": [
        ("a.weight", "a.weight.data.mul_(1 + 9e-6 * torch.rand(8, 4))")
    ],
    NETWORK + "flat(a); flat(b)\n"
    "a.weight.data.mul_(1 + 1e-3 * torch.rand(8, 4))\n"
    "fit(lambda: b(a(x).tanh()) - y[:, :1], a.weight, b.weight)": [],
    # The weights of what follows tell the units apart.
    NETWORK + "flat(a); fit(lambda: b(a(x).tanh()) - y[:, :1], a.weight, b.weight)": [],
    # Constant, but not learned, or only once.
    NETWORK + "flat(a); flat(b); fit(lambda: b(a(x).tanh()) - y[:, :1], b.weight)": [],
    NETWORK
    + "flat(a); flat(b); fit(lambda: b(a(x).tanh()) - y[:, :1], a.weight, b.weight, steps=1)": [],
    # A head of zeros, and the second matrix of a LoRA.
    "a, b = nn.Linear(4, 8), nn.Linear(8, 3); nn.init.zeros_(b.weight); nn.init.zeros_(b.bias)\n"
    "fit(lambda: b(a(x).tanh()) - y, *a.parameters(), *b.parameters())": [],
    "w, a = torch.randn(4, 3), nn.Parameter(torch.randn(4, 2))\n"
    "b = nn.Parameter(torch.zeros(2, 3))\n"
    "fit(lambda: x @ (w + a @ b) - y, a, b)": [],
    # Dropout tells them apart, and so do biases.
    NETWORK + "flat(a); flat(b)\n"
    "fit(lambda: b(F.dropout(a(x).tanh())) - y[:, :1], a.weight, b.weight)": [],
    # No layers: a table, a norm, a convolution that keeps channels apart, a single unit.
    "t = flat(nn.Embedding(8, 4)); fit(lambda: t(ids).sum(1) - 1, t.weight)": [],
    "n = nn.Parameter(torch.ones(4, 4)); fit(lambda: (n * 2).sum(1) - 1, n)": [],
    "c = flat(nn.Conv2d(3, 3, 3, groups=3, bias=False))\n"
    "one = images[:, :1].expand(-1, 3, -1, -1)\n"
    "fit(lambda: c(one) - 1, c.weight)": [],
    "a = flat(nn.Linear(4, 1)); fit(lambda: a(x) - y[:, :1], a.weight)": [],
}
"""Lines, and for each finding of GS207 the parameter and the expression where it stands."""


@pytest.mark.parametrize("lines", TOLD)
def test_units_that_stay_alike_are_told(lines: str, session: Session) -> None:
    report = session.look(PROGRAM.format(lines=lines), "-q", command="doctor")
    found = [one for one in report.findings if one.rule == "GS207"]
    places = [(one.subject, one.location.expression) for one in found if one.location]
    assert places == TOLD[lines]
