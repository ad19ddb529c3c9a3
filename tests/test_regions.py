"""Regions without gradients and Functions that use leaves inside: one finding a cause, at the line
that is to blame, and what an evaluation is no reason for."""

from __future__ import annotations

import pytest

from tests.looking import Session

TOWER = """
import contextlib
import torch
from torch import nn
torch.manual_seed(0)
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.blocks = nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(70))
    def run(self, x):
        x = torch.tanh(self.first(x))
        for block in self.blocks:
            x = x + torch.tanh(block(x))
        return x
def quiet(function):
    def inner(*args):
        with torch.no_grad():  # quiet
            return function(*args)
    return inner
@contextlib.contextmanager
def silence():
    with torch.no_grad():  # silence
        yield
class Sick(Tower):
{method}
tower, last = Sick(), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*tower.parameters(), *last.parameters()], lr=0.1)
for _ in range(3):
    loss = last(tower(torch.randn(8, 4)).clone()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

# A decorated function is told where it is called, inference mode where the first call ran in it.
_CALLED, _FIRST = "tower(torch.randn(8, 4))", "self.first(x)"
REGIONS = {
    "@torch.no_grad()\ndef forward(self, x):\n    return self.run(x)": _CALLED,
    "@torch.no_grad\ndef forward(self, x):\n    return self.run(x)": _CALLED,
    "@torch.inference_mode()\ndef forward(self, x):\n    return self.run(x)": _FIRST,
    "@quiet\ndef forward(self, x):\n    return self.run(x)": "with torch.no_grad()",
    "def forward(self, x):\n    with torch.no_grad():\n        return self.run(x)": (
        "with torch.no_grad()"
    ),
    "def forward(self, x):\n    with silence():\n        return self.run(x)": (
        "with torch.no_grad()"
    ),
    "def forward(self, x):\n    with torch.inference_mode():\n        with torch.enable_grad():\n"
    "            x = x + 1\n        return self.run(x)": _FIRST,
    "def forward(self, x):\n    with torch.no_grad() as none, silence():\n        x = x + 1\n"
    "    with torch.set_grad_enabled(False):\n        return self.run(x)": (
        "with torch.set_grad_enabled(False)"
    ),
    "def forward(self, x):\n    torch.set_grad_enabled(False)\n    x = self.run(x)\n"
    "    torch.set_grad_enabled(True)\n    return x": "torch.set_grad_enabled(False)",
    # What a block inside of the region switches is over after that.
    "@torch.no_grad()\ndef forward(self, x):\n    with torch.no_grad():\n        x = x + 1\n"
    "    with torch.enable_grad():\n        x = x + 1\n    return self.run(x)": _CALLED,
}


@pytest.mark.parametrize("method", REGIONS)
def test_a_region_without_gradients_is_one_finding(method: str, session: Session) -> None:
    lines = "".join(f"    {line}\n" for line in method.splitlines())
    report = session.look(TOWER.format(method=lines), "-q", "--steps", "all", command="doctor")
    (found,) = report.findings
    assert (found.rule, found.severity, found.subject) == ("GS303", "warning", "tower")
    assert found.location is not None
    # Since Python 3.13 a block begins at what it enters.
    words = found.location.expression, REGIONS[method]
    assert len({one.removeprefix("with ") for one in words}) == 1
    assert "142 parameters get no gradient" in found.message
    (inside,) = [line for line in found.evidence if line.startswith("ran ")]
    is_known = REGIONS[method] != _FIRST
    assert inside.startswith("ran there" if is_known else "ran in inference mode")
    assert any(line.startswith("its inputs depend on") for line in found.evidence) is is_known
    assert ("`self.first(x)` at" in inside) is is_known
    assert "`block(x)` at" in inside


def test_after_a_failure_too(session: Session) -> None:
    method = "    @torch.no_grad()\n    def forward(self, x):\n        return self.run(x)\n"
    text = TOWER.format(method=method).replace("last(tower", "(tower")
    report = session.look(text, "-q", command="doctor")
    (found,) = report.findings
    assert (found.rule, found.severity) == ("GS303", "error")
    assert found.location is not None
    assert found.location.expression == "tower(torch.randn(8, 4))"
    assert "142 parameters" in found.message


TWINS = """
import torch
from torch import nn
torch.manual_seed(0)
one, other, scale = nn.Linear(4, 4), nn.Linear(4, 4), nn.Parameter(torch.tensor(2.0))
optimizer = torch.optim.Adam([*one.parameters(), *other.parameters(), scale])
@torch.no_grad()
def embed(net, x):
    return torch.tanh(net(x))
for _ in range(4):
    x = torch.randn(8, 4)
    loss = (scale * embed(one, x) @ embed(other, x).T).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_gets_no_gradient_at_all_learns_by_no_other_way(session: Session) -> None:
    report = session.look(TWINS, "-q", "--steps", "all", command="doctor")
    assert [(one.rule, one.subject) for one in report.findings] == [("GS303", "one, other")]


HELD = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.extra, self.is_on = nn.Linear(4, 4), nn.Linear(4, 4), True
    def forward(self, x):
        x = torch.tanh(self.base(x))
        return {inside}
adapter, last = Adapter(), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*adapter.parameters(), *last.parameters()], lr=0.1)
@torch.no_grad()
def evaluate(x):
    return last(adapter(x))
for _ in range(4):
    adapter.is_on = True
    x = torch.randn(8, 4, requires_grad=True)
    {use}
    loss = last(h).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    adapter.is_on = True
    evaluate(x)
"""
_ADDED = "x + self.extra(x) if self.is_on else x"
_AGAIN = "h = checkpoint(adapter, x, use_reentrant=True)"

HELD_BACK: dict[tuple[str, str], tuple[str, str, str]] = {
    # What backward computes again has no part for it.
    (_ADDED, f"{_AGAIN}; adapter.is_on = False"): ("GS303", _AGAIN[4:], "adapter.extra"),
    ("x + self.extra(x).detach()", _AGAIN): ("GS303", _AGAIN[4:], "adapter.extra"),
    (_ADDED, _AGAIN): ("", "", ""),
    (_ADDED, "h = checkpoint(adapter, x, use_reentrant=False)"): ("", "", ""),
    # No graph has ever held it, though an evaluation without gradients used it as well.
    (_ADDED, f"{_AGAIN}; adapter(x); h = x + adapter.base(x)"): (
        "GS301",
        "self.extra(x)",
        "adapter.extra",
    ),
    (_ADDED, "adapter(x); h = x + adapter.base(x)"): ("GS301", "self.extra(x)", "adapter.extra"),
}


@pytest.mark.parametrize(("inside", "use"), HELD_BACK)
def test_what_is_used_and_gets_nothing(inside: str, use: str, session: Session) -> None:
    text = HELD.format(inside=inside, use=use)
    report = session.look(text, "-q", "--steps", "all", command="doctor")
    found = [one for one in report.findings if one.severity != "information"]
    told = [
        (one.rule, one.location.expression if one.location else "", one.subject) for one in found
    ]
    assert told == [HELD_BACK[inside, use]] * bool(HELD_BACK[inside, use][0])
