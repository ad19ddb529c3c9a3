"""A product of two factors that are both zero: where each was filled."""

from __future__ import annotations

import pytest

from tests.looking import Session

TEXT = """
import torch
from torch import nn
torch.manual_seed(0)
class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.trunk = nn.Linear(4, 3), nn.Linear(4, 4)
        {up}  # up
        {down}  # down
    def forward(self, x):
        x = torch.tanh(self.trunk(x))
        return self.base(x) + {product}
model = Adapted()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = (model(torch.randn(8, 4)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_MATRICES = "(x @ self.down) @ self.up"
_LAYERS = "self.down(x) * self.up(x)"

STARTS = {
    ("self.up = nn.Parameter(torch.zeros(2, 3))", "self.down = nn.Parameter(torch.zeros(4, 2))"): (
        _MATRICES,
        "up",
    ),
    # Only what was done last before the first use counts.
    (
        "self.up = nn.Linear(4, 3); nn.init.zeros_(self.up.weight); nn.init.zeros_(self.up.bias)",
        "self.down = nn.Linear(4, 3); self.down.weight.data.zero_(); self.down.bias.data.fill_(0)",
    ): (_LAYERS, "up"),
    (
        "self.up = nn.Parameter(torch.randn(2, 3))",
        "self.down = nn.Parameter(torch.zeros(4, 2)); self.up.data.mul_(0)",
    ): (_MATRICES, "down"),
    # One of them is not zero, or not by what it holds.
    ("self.up = nn.Parameter(torch.zeros(2, 3))", "self.down = nn.Parameter(torch.ones(4, 2))"): (
        _MATRICES,
        "",
    ),
    ("self.up = nn.Parameter(torch.zeros(2, 3))", "self.down = nn.Parameter(torch.ones(4, 2))  "): (
        "(x @ self.down).clamp(max=-9).add(9) @ self.up",
        "product",
    ),
}


@pytest.mark.parametrize(("up", "down"), STARTS)
def test_two_factors_of_zeros(up: str, down: str, session: Session) -> None:
    product, marked = STARTS[up, down]
    text = TEXT.format(up=up, down=down, product=product).lstrip("\n")
    report = session.look(text, "-q", command="doctor")
    found = [one for one in report.findings if one.severity != "information"]
    if not marked:
        assert found == []
        return
    lines = text.splitlines()
    line = next(
        n
        for n, one in enumerate(lines, 1)
        if one.endswith(f"# {marked}") or (marked == "product" and product in one)
    )
    (told,) = [one for one in found if one.location and one.location.line == line]
    assert told.rule == "GS205"
    filled = [one for one in told.evidence if one.startswith("filled with zeros: ")]
    assert len(filled) == (marked != "product")
    if filled:
        assert "up" in filled[0] and "down" in filled[0]
        at = next(n for n, one in enumerate(lines, 1) if product in one)
        assert any(
            one.startswith("multiplied at") and one.endswith(f":{at}") for one in told.evidence
        )
