"""Custom Functions that make the first NaN, in forward and in backward, without the program
noticing who looked; and numbers that are 0 in the dtype of what they are added to."""

from __future__ import annotations

import pytest

from tests.looking import Session

PROGRAM = """
import torch
runs = []
class Odd(torch.autograd.Function):
    calls = 0
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        {forward}
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        {backward}
for step in range({steps}):
    w = torch.full((3,), 0.0 if step == {steps} - 1 else 1.0, requires_grad=True)
    {apply}.sum().backward()
    print("gradient", w.grad.tolist(), Odd.calls, len(runs))
"""

APPLY = "Odd.apply(w)"
FORWARD, BACKWARD = "return x * 1.0", "return g"
BORN: dict[tuple[str, str], str] = {
    ("return torch.log(x) + 1", BACKWARD): "GS101",
    ("y = x - x.clone(); y /= x; return y", BACKWARD): "GS101",
    (FORWARD, "m = torch.where(x > 0, 0.0, -torch.inf); return g * (m * x)"): "GS102",
    # What it counts and prints, it counts and prints once.
    (FORWARD, "Odd.calls += 1; runs.append(1); print('ran'); return g / x"): "GS102",
    # Not to be run again, or not seen by torch.
    ("ctx.left = iter([1]); return x * 1.0", "return g / x * next(ctx.left)"): "GS102",
    (FORWARD, "return g.new_tensor([1.0 / (v or 1e-320) for v in x.tolist()])"): "GS102",
}


def program(case: tuple[str, str], steps: int) -> str:
    """The program with a Function whose forward and backward have these lines."""
    forward, backward = case
    return PROGRAM.format(forward=forward, backward=backward, apply=APPLY, steps=steps)


@pytest.mark.parametrize("steps", [1, 14], ids=["closely", "briefly"])
@pytest.mark.parametrize("case", BORN, ids=" | ".join)
def test_a_function_that_makes_nan_is_told_where_it_is_applied(
    case: tuple[str, str], steps: int, session: Session
) -> None:
    report = session.look(program(case, steps), "-q", command="doctor")
    first = report.findings[0]
    assert first.location is not None
    assert (first.rule, first.location.expression) == (BORN[case], APPLY)


@pytest.mark.parametrize("case", BORN, ids=" | ".join)
def test_who_looks_for_it_is_not_noticed(case: tuple[str, str], session: Session) -> None:
    path = session.write(program(case, 2))
    done = session.cli("doctor", str(path), "--keep-going")
    alone = {"__name__": "__main__"}
    printed: list[str] = []
    exec(
        compile(path.read_text("utf-8"), "alone", "exec"),
        {**alone, "print": lambda *parts: printed.append(" ".join(map(str, parts)))},
    )
    told = [line for line in done.out.splitlines() if line.startswith(("gradient", "ran"))]
    assert told == printed


ROUNDED: dict[str, tuple[float, str] | None] = {
    "w + 1e-10": (1e-10, "float16"),
    "1e-10 + w": (1e-10, "float16"),
    "torch.add(w, other=1e-10)": (1e-10, "float16"),
    "w.clamp(min=1e-10)": (1e-10, "float16"),
    "w.clamp_min(1e-10)": (1e-10, "float16"),
    "w + 3.1e-8": None,
    "w + 2.9e-8": (2.9e-8, "float16"),
    "w.clamp(max=1e-10)": None,
    "w + 1": None,
    "w.float() + 1e-10": None,
    "w.bfloat16() + 1e-10": None,
    "w.float() + 1e-50": (1e-50, "float32"),
}


@pytest.mark.parametrize("expression", ROUNDED)
def test_a_number_that_is_0_in_the_dtype_of_the_result_is_known(
    expression: str, session: Session
) -> None:
    text = f"""
import torch
w = torch.ones(3, dtype=torch.float16, requires_grad=True)
(1 / ({expression})).sum().backward()
"""
    seen = session.seen(text)
    known = [(one.value, one.dtype) for one in seen.roundings]
    expected = ROUNDED[expression]
    assert known == ([] if expected is None else [expected])
