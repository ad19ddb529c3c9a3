"""Programs that find gradients which are not finite, and leave the step out: that is no fault of
theirs, and what only looks like it is told."""

from __future__ import annotations

import pytest

from tests.looking import Session

TRAINING = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
def is_fine():
    return all(one.grad.isfinite().all() for one in model.parameters())
def loss_of(step):
    x = torch.randn(8, 4)
    y = x.sum(1, keepdim=True)
    if step in {bad}:
        y[3] = float("nan")
    return nn.functional.mse_loss(model(x), y)
for step in range(12):
"""

NORM = """
    optimizer.zero_grad()
    loss_of(step).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if norm.isfinite():
        optimizer.step()
"""


MENDED = """
    optimizer.zero_grad()
    loss_of(step).backward()
    for one in model.parameters():
        one.grad = torch.nan_to_num(one.grad)
    optimizer.step()
"""


TOGETHER = """
    (loss_of(step) / 4).backward()
    if step % 4 == 3:
        if is_fine():
            optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("loop", "bad", "told"),
    [
        (NORM, (0, 5), "2 of 12 backward calls"),
        (MENDED, (2, 4), "2 of 12 backward calls"),
        (TOGETHER, (5,), "1 of 12 backward calls"),
    ],
)
def test_a_step_that_is_left_out_is_no_fault(
    loop: str, bad: tuple[int, ...], told: str, session: Session
) -> None:
    done = session.cli("doctor", str(session.write(TRAINING.format(bad=bad) + loop)))
    said = " ".join(done.out.split())
    assert (done.status, "error" in said, "warning" in said) == (0, False, False), done.out
    assert f"{told} brought NaN or infinity that no step has used; first in call" in said
    assert "holds NaN or infinity before it goes into `nn.functional.mse_loss" in said


STEPS_ANYWAY = """
    loss = loss_of(step)
    optimizer.zero_grad()
    loss.backward()
    if not is_fine():
        print("not finite", step)
    optimizer.step()
"""

STAYS = """
    loss_of(step).backward()
    if is_fine():
        optimizer.step()
        optimizer.zero_grad()
"""

BY_HAND = """
    optimizer.zero_grad()
    loss_of(step).backward()
    with torch.no_grad():
        for one in model.parameters():
            one -= 0.01 * one.grad
"""

RAISES = """
    optimizer.zero_grad()
    loss_of(step).backward()
    if not is_fine():
        raise FloatingPointError(step)
    optimizer.step()
"""

SCALER = """
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    optimizer.zero_grad()
    scaler.scale(loss_of(step)).backward()
    scaler.step(optimizer)
    scaler.update()
"""


COPIES = """
    found = []
    for task in range(3):
        optimizer.zero_grad()
        loss_of(3 * step + task).backward()
        found.append([one.grad.clone() for one in model.parameters()])
    for one, *gradients in zip(model.parameters(), *found):
        one.grad = torch.stack(gradients).mean(0)
    optimizer.step()
"""

MOST = range(3, 12)


@pytest.mark.parametrize(
    ("loop", "bad"),
    [
        (STEPS_ANYWAY, (4,)),
        (STAYS, (4,)),
        (BY_HAND, (4,)),
        (RAISES, (4,)),
        (SCALER, (4,)),
        (COPIES, (6,)),
        (COPIES, (34, 35)),
        (NORM, tuple(MOST)),
    ],
)
def test_what_only_looks_like_it_is_told(loop: str, bad: tuple[int, ...], session: Session) -> None:
    done = session.cli("doctor", str(session.write(TRAINING.format(bad=bad) + loop)))
    assert done.status == 1
    assert "GS105 nonfinite-input · error · program.py:13" in done.out, done.out
    assert f"these were seen in call {bad[0] + 1}" in " ".join(done.out.split())


def test_the_program_is_stopped_before_the_next_call_at_the_latest(session: Session) -> None:
    printing = STEPS_ANYWAY + "    print('stepped', step, flush=True)\n"
    done = session.cli("doctor", str(session.write(TRAINING.format(bad=(4,)) + printing)))
    assert "stepped 4" in done.out and "stepped 5" not in done.out
