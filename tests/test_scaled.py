"""Mixed precision: the scale of a GradScaler beside the root, norms without it, skipped steps."""

from __future__ import annotations

import json

import pytest

from gradscope.model import storage
from tests.looking import Session, new_gradient

LOOP = """
    import torch
    from torch import nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    nn.init.zeros_(model[2].weight)
    nn.init.zeros_(model[2].bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE)
    for step in range(STEPS):
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(torch.randn(16, 4))
        loss = (out.float() - TARGET).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    """


def program(scale: str = "2.0**17", steps: int = 6, target: str = "0.35") -> str:
    """The loop above: its gradient is too large for float16 at 2**17, and is not at 2**16."""
    return LOOP.replace("SCALE", scale).replace("STEPS", str(steps)).replace("TARGET", target)


def test_the_scale_stands_beside_the_root_and_the_norms(session: Session) -> None:
    report = session.look(program(), "--call", "2")
    (root,) = report.graph.roots
    assert root.scale == 65536
    done = session.cli("show", "report.json")
    assert "Mul · scale 65536" in done.out
    assert "‖g‖/scale" in done.out
    header, *rows = session.cli("show", "report.json", "--format", "csv").out.splitlines()
    column = header.split(",").index("unscaled")
    norms = {row.split(",")[0]: row.split(",")[column] for row in rows}
    scaled = new_gradient(report, "2.bias").norm
    assert float(norms["2.bias"]) == float(scaled or 0) / 65536
    assert float(norms["2.bias"]) == pytest.approx(0.7, rel=0.01)  # 2 · 0.35, the loss's own


@pytest.mark.parametrize(
    ("root", "scale"),
    [
        ("scaler.scale(w.sum() * 1.0)", 1024),
        ("scaler.scale([w.sum(), w.prod()])[1]", 1024),
        ("(w.sum() * torch.tensor(1024.0))", None),
        ("torch.amp.GradScaler('cpu', enabled=False).scale(w.sum())", None),
    ],
)
def test_what_a_scaler_multiplies_by_is_told(
    session: Session, root: str, scale: int | None
) -> None:
    head = "import torch\nw = torch.ones(2, requires_grad=True)\n"
    head += "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)\n"
    assert session.look(f"{head}{root}.backward()\n").graph.scale == scale
    assert ("‖g‖/scale" in session.cli("show report.json").out) == bool(scale)


def test_steps_that_were_skipped_are_counted_with_the_overflow(session: Session) -> None:
    path = session.write(program())
    done = session.cli("doctor", "program.py", "-o", "seen.json")
    last = " ".join(done.out.split())
    assert "1 of 6 steps skipped (scale 131072 → 65536); overflow at Addmm, program.py:11" in last
    seen = storage.load(str(path.with_name("seen.json"))).observations
    assert seen is not None
    assert [step.scale for step in seen.steps] == [131072, *[65536] * 5]
    # Without the scale: (0.35 - out)² beside 0.35².
    assert all(0.05 < float(step.loss or 0) < 0.13 for step in seen.steps)
    told = json.loads(session.cli("doctor", "seen.json", "--format", "json").out)
    assert told["report"]["skipped_steps"]["skipped"] == 1
    assert done.status == 0


@pytest.mark.parametrize("skipped", [0, 1, 2])
def test_fused_steps_are_told_of_as_the_others_are(skipped: int, session: Session) -> None:
    # They divide by the scale themselves, and no version counts what they write.
    late = f"(900.0 if step in (12, 15)[:{skipped}] else 0.35)"
    text, told = program("2.0**10", steps=20, target=late), []
    for fused in (False, True):
        told.append(session.told(text.replace("lr=0.01", f"lr=0.01, fused={fused}"), "doctor").out)
    assert told[0] == told[1]
    assert ("no findings" in told[0]) and (f"{skipped} of 20 steps" in told[0]) == (skipped > 0)
