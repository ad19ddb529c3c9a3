"""What the doctor says of a custom Function is what ``gradscope check`` says of its call."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

from gradscope.model import storage
from gradscope.model.checks import CallCheck
from tests.looking import Session
from tests.wrong_functions import CASES, program

OWN = """
import random
import torch
class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return {backward}
torch.manual_seed(0)
x = {x}
({name}.apply(x) * 2).abs().sum().backward()
"""


@dataclass(frozen=True)
class Own:
    """A Function of one input, and the verdict on it; ``reason`` is a part of what is told."""

    forward: str
    backward: str
    verdict: str
    x: str = "torch.linspace(1, 2, 5).requires_grad_()"
    name: str = "Own"
    reason: str = ""

    @property
    def text(self) -> str:
        """The whole program."""
        return OWN.format(name=self.name, forward=self.forward, backward=self.backward, x=self.x)


def _off(share: float, verdict: str) -> Own:
    return Own("x * x", f"grad * 2 * x * (1 + {share})", verdict)


AROUND = "torch.linspace(-2, 2, 9).requires_grad_()"
COMPLEX = "torch.randn(4, dtype=torch.cfloat, requires_grad=True)"
TABLE = {
    "off by 5e-5": _off(5e-5, "right"),
    "just inside the tolerance": _off(9.9e-5, "right"),
    "just outside the tolerance": _off(1.02e-4, "wrong"),
    "just outside, to the other side": _off(-1.02e-4, "wrong"),
    "off by 5e-4": _off(5e-4, "wrong"),
    "off by 2e-2": _off(2e-2, "wrong"),
    "a kink": Own("x.relu()", "grad * (x > 0)", "kink", AROUND),
    "a kink, and wrong beside it": Own("x.relu()", "grad", "wrong", AROUND),
    "flat everywhere": Own("x.round()", "grad", "meant", AROUND, reason="flat here"),
    "flat in part, not by its name": Own("x.clamp(-1, 1)", "grad", "wrong", AROUND),
    "flat in part, by its name": Own(
        "x.clamp(-1, 1)", "grad", "meant", AROUND, "StraightThrough", "its name says"
    ),
    "wrong, whatever its name says": Own("x * x", "grad * x", "wrong", name="RoundedSquare"),
    "the identity": Own("x.clone()", "-grad", "meant", reason="is the identity"),
    "the identity inside its bounds": Own("x.clamp(-9, 9)", "-grad", "wrong"),
    "a draw of torch": Own("x * torch.rand_like(x)", "grad * 0.3", "wrong"),
    "a draw of python": Own("x * random.random()", "grad * 0.3", "random", reason="two runs"),
    "complex": Own("x * x", "grad * (2 * x).conj()", "right", COMPLEX),
    "complex, not conjugated": Own("x * x", "grad * 2 * x", "wrong", COMPLEX),
    "ties": Own(
        "x.max()", "torch.where(x == x.max(), grad, 0)", "kink", "torch.ones(3, requires_grad=True)"
    ),
    "half precision": Own(
        "x * x", "grad * 3 * x", "wrong", "torch.ones(3).half().requires_grad_()"
    ),
    "NaN at zero": Own("x * x", "grad * 2 * x * x / x", "wrong", AROUND),
    "no gradient": Own("x * 2", "None", "wrong"),
    "upstream changed": Own("x * 2", "grad.mul_(2)", "wrong", reason="in place"),
    "another precision": Own("x.float() * 2", "grad * 2", "not checked", reason="double precision"),
    "a backward that fails": Own("x * 2", "grad.view(100)", "not checked", reason="raised"),
    "a sparse operand": Own(
        "x.to_dense() * 1",
        "grad.to_sparse()",
        "not checked",
        "torch.eye(3).to_sparse().requires_grad_()",
        reason="sparse",
    ),
}

STATE = {
    "a count on the class": """
class Own(torch.autograd.Function):
    calls = 0
    @staticmethod
    def forward(ctx, x):
        Own.calls += 1
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
loss = Own.apply(x).sum()
""",
    "a global variable": """
scale = 1.0
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        global scale
        scale = 2.0
        return x * scale
    @staticmethod
    def backward(ctx, grad):
        return grad * scale
loss = Own.apply(x).sum()
""",
    "a variable around it": """
def build():
    count = 0
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            nonlocal count
            count += 1
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            return grad * 2
    return Own
loss = build().apply(x).sum()
""",
    "an int, a list, a bool mask beside x": """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask, index, power):
        ctx.save_for_backward(x, mask, index)
        ctx.power = power
        return torch.where(mask, x[index] ** power[0], 0)
    @staticmethod
    def backward(ctx, grad):
        x, mask, index = ctx.saved_tensors
        local = torch.where(mask, ctx.power[0] * x[index] ** (ctx.power[0] - 1), 0)
        return torch.zeros_like(x).index_add(0, index, grad * local * 1.01), None, None, None
loss = Own.apply(x, torch.tensor([True, False, True]), torch.tensor([2, 1, 0]), [3]).sum()
""",
    "a python function": """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, x):
        return run(x)
    @staticmethod
    def backward(ctx, grad):
        return None, grad * 2
loss = Own.apply(lambda x: x * 2, x).sum()
""",
    "the same tensor twice": """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b
    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a
loss = Own.apply(x, x).sum()
""",
    "in place": """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
loss = Own.apply(x * 1).sum()
""",
    "a draw that is kept": """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = torch.rand_like(x) > 0.5
        ctx.save_for_backward(mask)
        return x * mask
    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask
loss = Own.apply(x).sum()
""",
    "several outputs, one of them whole numbers": """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        order = x.argsort()
        ctx.mark_non_differentiable(order)
        return x.sin(), order, x.cos()
    @staticmethod
    def backward(ctx, first, _, third):
        (x,) = ctx.saved_tensors
        return first * x.cos() + third * x.sin()
one, _, three = Own.apply(x)
loss = (one * three).sum()
""",
    "setup_context": """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.exp()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return grad * out
loss = Own.apply(x).sum()
""",
}
HEAD = "import torch\ntorch.manual_seed(0)\nx = torch.randn(3).requires_grad_()\n"

PROGRAMS = {
    **{name: one.text for name, one in TABLE.items()},
    **{name: f"{HEAD}{text}loss.backward()\n" for name, text in STATE.items()},
    **{f"{name}, wrong": program(name, is_right=False) for name in CASES},
    **{f"{name}, right": program(name, is_right=True) for name in CASES},
}


def said(session: Session, text: str, command: str, *options: str) -> list[CallCheck]:
    """What a command says of the custom Functions of a program."""
    done = session.cli(command, str(session.write(text)), "-o", "said.json", *options)
    assert done.status in (0, 1), done.err
    report = storage.load(session.folder / "said.json")
    if command == "doctor":
        assert report.observations is not None
        return list(report.observations.functions)
    assert report.checks is not None
    nodes = report.graph.nodes
    return [one for one in report.checks.calls if nodes[one.nodes[0]].kind == "custom"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_doctor_and_check_say_the_same(name: str, session: Session) -> None:
    checked = said(session, PROGRAMS[name], "check")
    examined = said(session, PROGRAMS[name], "doctor", "--check")
    known = TABLE.get(name)
    if known is not None:
        assert [one.verdict for one in checked] == [known.verdict]
        assert known.reason in checked[0].reason
    assert [_plain(one) for one in examined] == [_plain(one) for one in checked]


def _plain(one: CallCheck) -> tuple[object, ...]:
    # Which element differs most is a question of rounding, and of what is drawn.
    inputs = [(each.input, each.verdict) for each in one.inputs]
    return one.function, one.verdict, one.reason, inputs


UNASKED = {
    "off by 5e-5": (5e-5, 5, "right", ""),
    "off by 5e-4": (5e-4, 5, "wrong", ""),
    "as large as may be": (5e-4, 4_096, "wrong", ""),
    "larger": (
        5e-4,
        4_097,
        "not checked",
        "its operands have 4,097 elements; --check takes it too",
    ),
}


@pytest.mark.parametrize("name", UNASKED)
def test_small_functions_are_checked_unasked(name: str, session: Session) -> None:
    share, count, verdict, reason = UNASKED[name]
    one = Own(
        "x * x",
        f"grad * 2 * x * (1 + {share})",
        verdict,
        f"torch.linspace(1, 2, {count}).requires_grad_()",
    )
    done = session.cli("doctor", str(session.write(one.text)))
    assert ("GS601" in done.out) == (verdict == "wrong")
    (found,) = said(session, one.text, "doctor")
    assert (found.verdict, found.reason) == (verdict, reason)


def test_numbers_that_differ_little_are_told_with_the_digits_it_takes(session: Session) -> None:
    done = session.cli("doctor", str(session.write(_off(5e-4, "wrong").text)))
    (line,) = (one for one in done.out.splitlines() if "backward says" in one)
    said_by = re.findall(r"says? ([\d.]+)", line)
    assert len(set(said_by)) == 2


UNHARMED = """
import random, sys
import torch
random.seed(0), torch.manual_seed(0)
LOG = []
class Own(torch.autograd.Function):
    calls = 0
    @staticmethod
    def forward(ctx, x):
        Own.calls += 1
        LOG.append(x.dtype)
        ctx.save_for_backward(x)
        ctx.parts = [x * 1.0, 2.0]
        random.random(), torch.rand(1), print("forward", file=sys.stderr)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        Own.calls += 1
        (x,) = ctx.saved_tensors
        ctx.parts.pop().hex(), ctx.parts[0].zero_(), x.data.add_(0)
        with torch.enable_grad():
            (weight * 3).sum().backward()
        return grad * 2.5
weight = torch.ones(2, requires_grad=True)
x = torch.ones(3, requires_grad=True)
hidden = x.exp()
for step in range(2):
    hidden = x.exp()
    Own.apply(hidden).sum().backward()
print(Own.calls, LOG, weight.grad, x.grad, hidden._version, weight._version)
print(random.random(), torch.rand(2))
"""


def test_a_function_runs_as_often_as_without_us(session: Session) -> None:
    script = session.write(
        f"import random, torch\nrandom.seed(0), torch.manual_seed(0)\n{UNHARMED}"
    )
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    for options in (["--keep-going"], ["--check", "--keep-going"]):
        done = session.cli("doctor", str(script), "-o", "said.json", *options)
        assert done.out.startswith(plain.stdout)
        assert done.err.count("forward\n") == plain.stderr.count("forward\n")
        report = storage.load(session.folder / "said.json")
        assert report.observations is not None
        assert [one.verdict for one in report.observations.functions] == ["wrong"]


def test_functions_of_one_name_at_one_place_are_told_apart(session: Session) -> None:
    done = session.cli(
        "doctor",
        str(
            session.write("""
        import math
        import torch
        def made(factor):
            class Scaled(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x.sin()
                @staticmethod
                def backward(ctx, gradient):
                    return gradient * factor
            return Scaled
        x = torch.full((3,), 0.5, requires_grad=True)
        loss = 0
        for function in (made(math.cos(0.5)), made(7.0)):
            loss = loss + function.apply(x).sum()
        loss.backward()
        """)
        ),
    )
    assert (done.status, "GS601" in done.out) == (1, True), done.out
