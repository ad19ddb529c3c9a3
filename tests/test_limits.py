"""Parameters that a clamp takes in forward: which of their elements are held at a limit."""

from __future__ import annotations

import pytest

from tests.looking import Session

TEXT = """
import torch
from torch import nn
p = nn.Parameter(torch.tensor([0.5, 1.5, 2.5, -1.0]))
q = nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([{held}], lr=0.001{options})
for i in range({steps}):
    optimizer.zero_grad()
    y = {forward}
    (y * q).sum().backward()
    optimizer.step()
    {after}
"""

HELD: dict[str, tuple[dict[str, str], int]] = {
    "between": ({"forward": "p.clamp(0, 1)"}, 3),
    "from below": ({"forward": "p.clamp(min=0)"}, 1),
    "from above": ({"forward": "torch.clamp_max(p, 2)"}, 1),
    "inside": ({"forward": "p.clamp(-2, 3)"}, 0),
    "two steps are too few": ({"forward": "p.clamp(0, 1)", "steps": "2"}, 0),
    "another use": ({"forward": "p.clamp(0, 1) + p.square()"}, 0),
    "brought back": ({"forward": "p.clamp(0, 1)", "after": "p.data.clamp_(0, 1)"}, 0),
    "brought back by weight decay": (
        {"forward": "p.clamp(-2, 1)", "options": ", weight_decay=500.0"},
        0,
    ),
    "no parameter": ({"forward": "(p * 1).clamp(0, 1)"}, 0),
    "nobody steps it": ({"forward": "p.clamp(0, 1)", "held": "q"}, 0),
    "made to pass": ({"forward": "p + (p.clamp(0, 1) - p).detach()"}, 0),
}


@pytest.mark.parametrize("name", HELD)
def test_what_a_clamp_holds(name: str, session: Session) -> None:
    given, elements = HELD[name]
    words = {"held": "p, q", "options": "", "steps": "4", "after": "pass", **given}
    report = session.look(TEXT.format(**words), "-q", command="doctor")
    found = [one for one in report.findings if one.rule == "GS319"]
    assert len(found) == bool(elements)
    for one in found:
        assert one.evidence == (f"p: {elements} of 4 elements",)
        assert one.location is not None and one.location.expression == given["forward"]
