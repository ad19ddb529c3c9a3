"""Custom Functions that make the first NaN, in forward and in backward, without the program
noticing who looked; and what helps in float16."""

from __future__ import annotations

import pytest

from gradscope.words import one_line
from tests.looking import Session
from tests.test_unchanged import alone

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
    told = [line for line in done.out.splitlines() if line.startswith(("gradient", "ran"))]
    assert told == alone(str(path)).splitlines()


IN_ROWS = """
import torch
w = torch.ones(4{kind}, requires_grad=True)
x = torch.ones({shape}{kind})
{spoil}
{then}
loss = y.mean()
loss.backward()
"""
ROWS = {
    "one root at 0": ("6, 4", "x[5] = 0", "y = torch.sqrt((x * w) ** 2)", "GS102", "row 5 of 6"),
    "masked scores": (
        *("6, 3, 4", "mask = torch.zeros(6, 3); mask[0] = mask[4] = -torch.inf"),
        "y = torch.softmax((x * w).sum(-1) + mask, -1)",
        *("GS101", "rows 0 and 4 of 6"),
    ),
    "float16": (
        *("9, 4", "x[1:7] = 300", "h = x * w; y = (h * h).float()"),
        *("GS101", "rows 1, 2, 3, 4 and 2 more of 9"),
    ),
    "one dimension": (
        "4",
        "x[1] = x[2] = 0",
        "y = torch.log(x * w)",
        "GS101",
        "elements 1 and 2 of 4",
    ),
    "in the data": ("3, 4", "x[2, 1] = torch.nan", "y = x * w", "GS105", "row 2 of 3"),
    # As torch transposes a weight, its columns would be called rows.
    "float16, a weight": (
        *("2, 4", "x[:, 1] = 300; v = w.detach().expand(3, 4).clone().requires_grad_()"),
        *("y = torch.nn.functional.linear(x * w, v).float() * 1e4", "GS102", ""),
    ),
    # Of all rows, or of one number, there is nothing to tell.
    "every row": ("3, 4", "x[:, 0] = 0", "y = torch.log(x * w)", "GS101", ""),
    "one number": ("3, 4", "x[2] = 0", "y = torch.log((x * w).prod())", "GS101", ""),
}


@pytest.mark.parametrize("case", ROWS)
def test_the_rows_where_nan_is_born_are_told(case: str, session: Session) -> None:
    shape, spoil, then, rule, told = ROWS[case]
    kind = ", dtype=torch.float16" if "float16" in case else ""
    program = IN_ROWS.format(kind=kind, shape=shape, spoil=spoil, then=then)
    first = session.look(program, "-q", command="doctor").findings[0]
    (line,) = [line for line in first.evidence if "NaN" in line or "infinite" in line][:1]
    assert first.rule == rule
    assert line.partition(", in ")[2] == told, first.evidence
    if rule == "GS102":
        done = session.cli("backward", str(session.write(program)))
        assert f" in backward order{', in ' * bool(told)}{told}; " in one_line(done.out)


def test_rows_are_not_told_of_an_operand_that_has_it_everywhere(session: Session) -> None:
    program = """
import torch
a, b = torch.ones(4, 3, requires_grad=True), torch.ones(1, requires_grad=True)
x, y = torch.ones(4, 3), torch.zeros(1)
x[2] = 0
loss = torch.hypot(a * x, b * y).sum()
loss.backward()
"""
    first = session.look(program, "-q", command="doctor").findings[0]
    assert first.rule == "GS102"
    assert "sent 4 NaN and 0 infinite elements, 3 of them in row 2 of 4" in first.evidence[0]


def test_rows_are_told_of_no_tensor_but_the_one_that_was_read(session: Session) -> None:
    program = """
import torch
x, w = torch.ones(8, 3), torch.ones(3, requires_grad=True)
x[4] = -1
loss = torch.vmap(lambda row: torch.sqrt(row * w).sum())(x).sum()
loss.backward()
"""
    (found,) = session.look(program, "-q", command="doctor").findings
    # What the sums are of was not read.
    assert found.evidence[0] == "Sum: 1 NaN of 8 elements, float32, in element 4 of 8"
    assert found.message.startswith("`torch.sqrt(row * w).sum()` makes NaN; the")


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float"])
@pytest.mark.parametrize(
    ("loss", "rule"),
    [("(w / (w.norm() + 1e-10)).sum()", "GS101"), ("(w + 1e-10).sqrt().sum()", "GS102")],
)
def test_what_is_0_in_float16_is_not_all_that_helps_there(
    loss: str, rule: str, dtype: str, session: Session
) -> None:
    program = f"import torch\nw = torch.zeros(3).{dtype}().requires_grad_()\n({loss}).backward()\n"
    found = session.look(program, "-q", command="doctor").findings
    advice = [one.remedy for one in found if one.rule == rule]
    assert len(advice) == (dtype == "half")
    assert all("In float16 what is below 3e-8 is 0" in one for one in advice)
