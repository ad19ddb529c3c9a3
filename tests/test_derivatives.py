"""What the doctor says of a custom Function is what ``gradscope check`` says of its call."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest

from gradscope.model import storage
from gradscope.model.observations import Observations
from gradscope.model.studies import CallCheck
from tests.conftest import python_says
from tests.looking import Session
from tests.own_functions import function
from tests.wrong_functions import CASES, program

OWN = """
import random, numpy as np
import torch
{function}torch.manual_seed(0)
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
        text = function(self.name, self.forward, self.backward, keeps="x")
        return OWN.format(name=self.name, function=text, x=self.x)


def _off(share: float, verdict: str) -> Own:
    return Own("x * x", f"grad * 2 * x * (1 + {share})", verdict)


AROUND = "torch.linspace(-2, 2, 9).requires_grad_()"
COMPLEX = "torch.randn(4, dtype=torch.cfloat, requires_grad=True)"
TABLE = {
    "just inside the tolerance": _off(9.9e-5, "right"),
    "just outside the tolerance": _off(1.02e-4, "wrong"),
    "just outside, to the other side": _off(-1.02e-4, "wrong"),
    "a kink": Own("x.relu()", "grad * (x > 0)", "kink", AROUND),
    "a kink, and wrong beside it": Own("x.relu()", "grad", "wrong", AROUND),
    "flat everywhere": Own("x.round()", "grad", "meant", AROUND, reason="constant here"),
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
    "half inside": Own("(x.half() * 2).to(x.dtype)", "grad * 2", "not checked", reason="float16"),
    "another precision inside": Own(
        "torch.softmax(x, -1, dtype=torch.float32).type_as(x)",
        "(lambda y: (grad - (grad * y).sum(-1, keepdim=True)) * y)(x.float().softmax(-1))",
        "right",
    ),
    "another precision inside, wrong": Own(
        "(x.float() ** 3).to(x.dtype)", "(grad.float() * 2.97 * x**2).type_as(x)", "wrong"
    ),
    "numpy in forward": Own("torch.from_numpy(np.sin(x.numpy()))", "grad * x.cos()", "right"),
    "a forward that prints": Own("(print('forward'), x * 2)[1]", "grad * 2", "right"),
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
    "a count on the class": function("Own", "Own.calls += 1; x * 2", "grad * 2")
    + "Own.calls = 0\nloss = Own.apply(x).sum()\n",
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
    "an int, a list, a bool mask beside x": function(
        "Own",
        "ctx.power = power[0]; torch.where(mask, x[index] ** ctx.power, 0)",
        "local = torch.where(mask, ctx.power * x[index] ** (ctx.power - 1), 0); "
        "torch.zeros_like(x).index_add(0, index, grad * local * 1.01), None, None, None",
        given="x, mask, index, power",
        keeps="x, mask, index",
    )
    + "mask, index = torch.tensor([True, False, True]), torch.tensor([2, 1, 0])\n"
    "loss = Own.apply(x, mask, index, [3]).sum()\n",
    "a python function": function("Own", "run(x)", "None, grad * 2", given="run, x")
    + "loss = Own.apply(lambda x: x * 2, x).sum()\n",
    "in place": function("Own", "ctx.mark_dirty(x); x.mul_(3)", "grad * 2")
    + "loss = Own.apply(x * 1).sum()\n",
    "a draw that is kept": function(
        "Own",
        "mask = torch.rand_like(x) > 0.5; ctx.save_for_backward(mask); x * mask",
        "grad * ctx.saved_tensors[0]",
    )
    + "loss = Own.apply(x).sum()\n",
    "several outputs, one of them whole numbers": function(
        "Own",
        "order = x.argsort(); ctx.mark_non_differentiable(order); x.sin(), order, x.cos()",
        "first * x.cos() + third * x.sin()",
        upstream="first, _, third",
        keeps="x",
    )
    + "one, _, three = Own.apply(x)\nloss = (one * three).sum()\n",
    "flat by what gets the gradient of another": function(
        "Own", "chosen * 2", "grad * chosen, None", given="scores, chosen", keeps="chosen"
    )
    + "loss = Own.apply(x, x.exp()).sum()\n",
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
    if command == "doctor":
        return list(session.seen(text, *options).functions)
    done = session.cli(command, str(session.write(text)), "-o", "said.json", *options)
    assert done.status in (0, 1), done.err
    report = storage.load(session.folder / "said.json")
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
    if name.endswith(", right"):
        assert {one.verdict for one in checked} == {"right"}
    assert [_plain(one) for one in examined] == [_plain(one) for one in checked]


def _plain(one: CallCheck) -> tuple[object, ...]:
    # Which element differs most is a question of rounding, and of what is drawn.
    inputs = [(each.input, each.verdict) for each in one.inputs]
    return one.function, one.verdict, one.reason, inputs


LARGE = "torch.linspace(-2, 2, {:_}, dtype=torch.{}).requires_grad_()"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [5, 4_096, 4_097, 40_000])
@pytest.mark.parametrize(("share", "verdict"), [(5e-4, "wrong"), (5e-5, "right")])
def test_functions_of_any_size_are_checked_unasked(
    share: float, verdict: str, count: int, dtype: str, session: Session
) -> None:
    x = LARGE.format(count, dtype)
    text = Own("x.sin() + 3", f"grad * x.cos() * (1 + {share})", verdict, x).text
    (found,) = said(session, text, "doctor")
    assert found.verdict == verdict
    (checked,) = said(session, text, "check")
    assert _plain(found) == _plain(checked)


SAME = (
    "a kink",
    "a kink, and wrong beside it",
    "flat everywhere",
    "flat in part, by its name",
    "flat in part, not by its name",
    "the identity",
    "wrong, whatever its name says",
    "no gradient",
)


@pytest.mark.parametrize("name", SAME)
def test_the_verdict_on_a_large_function_is_that_on_a_small_one(
    name: str, session: Session
) -> None:
    text = replace(TABLE[name], x=LARGE.format(50_001, "float32")).text
    expected = {TABLE[name].verdict}
    if "kink" in expected:
        # A direction may pass by the few elements that have one, as the processor rounds.
        expected.add("right")
    for command in ("doctor", "check"):
        (found,) = said(session, text, command)
        assert found.verdict in expected, command


NOT_COMPARED = {
    "too large": (
        Own("x * 2", "grad * 3", "", "torch.ones(5_000_001).requires_grad_()").text,
        "Own (program.py:14), because it computes with 10,000,002 elements; --check takes it too",
    ),
    "too slow": (
        Own(
            "(__import__('time').sleep(1.3 * (x.dtype == torch.double)), x * 2)[1]", "grad * 3", ""
        ).text,
        "Own (program.py:14), because one run of it in float64 takes ",
    ),
    "given a module": (
        f"{HEAD}net = torch.nn.Linear(3, 3)\n"
        + STATE["a python function"].replace("lambda x: x * 2", "net")
        + "loss.backward()\n",
        "Own (program.py:12), because it takes a module, which would be run again too",
    ),
}


@pytest.mark.parametrize("name", NOT_COMPARED)
def test_what_was_not_compared_is_said(name: str, session: Session) -> None:
    text, reason = NOT_COMPARED[name]
    done = session.told(text, "doctor -o said.json")
    said_of_it = " ".join(done.out.split())
    assert f"not compared with finite differences: {reason}" in said_of_it
    assert "GS601" not in done.out
    again = session.cli("doctor", "said.json", "--format", "json")
    assert reason in json.loads(again.out)["report"]["notes"][0]


TWICE = """
import torch
from torch.autograd.function import once_differentiable
torch.manual_seed(0)
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.slope = 3 * x * x
        return x ** 3
    @staticmethod
    {mark}
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.set_grad_enabled({is_followed}):
            slope = {slope}
        return grad * slope
x = torch.linspace(-2, 2, {count}).requires_grad_()
w = torch.ones({count}, requires_grad=True)
y = (Cube.apply(x) * w).sum()
(slope,) = torch.autograd.grad(y, x, create_graph={is_differentiated})
(y + {penalty}).backward()
"""


@dataclass(frozen=True)
class Twice:
    """A Function whose gradient is differentiated, and the verdict on double backward."""

    slope: str
    verdict: str | None
    is_followed: bool = True
    mark: str = ""
    count: int = 6
    is_differentiated: bool = True

    @property
    def text(self) -> str:
        """The whole program."""
        return TWICE.format(
            mark=self.mark,
            is_followed=self.is_followed,
            slope=self.slope,
            count=self.count,
            is_differentiated=self.is_differentiated,
            penalty="slope.square().sum()" if self.is_differentiated and not self.mark else "0",
        )


TWICES = {
    "right": Twice("3 * x * x", "right"),
    "right, and large": Twice("3 * x * x", "right", count=9_000),
    "an attribute of ctx": Twice("ctx.slope", "wrong"),
    "an attribute of ctx, and large": Twice("ctx.slope", "wrong", count=9_000),
    "detached": Twice("3 * x.detach() * x", "wrong"),
    "under no_grad": Twice("3 * x * x", "wrong", is_followed=False),
    "ruled out": Twice("3 * x * x", None, mark="@once_differentiable"),
    "not differentiated twice": Twice("ctx.slope", None, is_differentiated=False),
    "wrong from the beginning": Twice("3.1 * x * x", None),
}


@pytest.mark.parametrize("name", TWICES)
def test_double_backward_is_compared_where_the_program_uses_it(name: str, session: Session) -> None:
    case = TWICES[name]
    for command in ("doctor", "check"):
        found = [one for one in said(session, case.text, command) if one.order == 2]
        assert [one.verdict for one in found] == ([case.verdict] if case.verdict else []), command
    done = session.cli("doctor", str(session.write(case.text)))
    wrong = "double backward of Cube is not the derivative of its backward." in done.out
    assert wrong == (case.verdict == "wrong")
    table = session.cli("check", str(session.folder / "program.py")).out
    assert ("Cube twice" in table) == (case.verdict is not None)


INNER = """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y = x.clone()
        y[:, 1:] += torch.tanh(x[:, :1] @ w[:1, 1:])
        ctx.save_for_backward(y, w)
        return y
    @staticmethod
    def backward(ctx, grad):
        y, w = ctx.saved_tensors
        with torch.enable_grad():
            first, w = y[:, :1].detach(), w.detach()
            first.requires_grad = w.requires_grad = True
            moved = torch.tanh(first @ w[:1, 1:])
        moved.backward(grad[:, 1:] * FACTOR)
        grad = grad.clone()
        grad[:, :1] += first.grad
        return grad, w.grad
"""
AROUND_INNER = """
import torch
torch.manual_seed(0)
{}
w = (torch.randn(6, 6) * 0.1).requires_grad_()
v = torch.randn(4, 6, requires_grad=True)
data, target = torch.randn(16, 4), torch.randn(16, 6)
for step in range(8):
    loss = (Own.apply(data @ v, w) - target).square().mean()
    loss.backward()
    with torch.no_grad():
        for one in (w, v):
            one -= 0.01 * one.grad
            one.grad = None
"""


@pytest.mark.parametrize("factor", ["1.0", "1.01"])
def test_a_function_with_a_graph_of_its_own_is_compared(factor: str, session: Session) -> None:
    text = AROUND_INNER.format(INNER.replace("FACTOR", factor))
    done = session.cli("doctor", str(session.write(text)), "-o", "report.json")
    report = storage.load(session.folder / "report.json")
    assert report.observations is not None
    # Its own backward calls and its own leaves are no part of the program's.
    assert report.observations.watched == 8
    seen = session.seen(text)
    assert {one.name for one in seen.learners} == {"w", "v"}
    if factor == "1.0":
        assert done.out.startswith("no findings"), done.out
    else:
        (finding,) = report.findings
        assert finding.rule == "GS601"
        assert finding.location is not None
        assert finding.location.expression.startswith("return ")
        assert any("Own.apply(data @ v, w)" in one for one in finding.evidence)
    (checked,) = said(session, text, "check")
    assert [checked.verdict] == [one.verdict for one in seen.functions]


def test_a_function_in_a_later_graph_of_the_step_is_compared(session: Session) -> None:
    text = (
        HEAD
        + STATE["setup_context"].replace("loss =", "own =").replace("grad * out", "grad * out * 2")
        + "other = torch.ones(3, requires_grad=True)\n"
        + "(slope,) = torch.autograd.grad((other * other).sum(), other, create_graph=True)\n"
        + "(own + slope.sum()).backward()\n"
    )
    assert "GS601" in session.told(text, "doctor").out
    # Functions of torch's own are taken for right.
    text = f"{HEAD}from torch.utils.checkpoint import checkpoint\n"
    text += "checkpoint(torch.sin, x, use_reentrant=True).sum().backward()\n"
    assert "not compared" not in session.told(text, "doctor").out


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
    plain = python_says(str(script))
    for options in (["--keep-going"], ["--check", "--keep-going"]):
        done = session.cli("doctor", str(script), "-o", "said.json", *options)
        assert done.out.startswith(plain.out)
        assert done.err.count("forward\n") == plain.err.count("forward\n")
        report = storage.load(session.folder / "said.json")
        assert [one.rule for one in report.findings] == ["GS601"]


IGNORING = "2 * x / x.numel()"


@pytest.mark.parametrize(
    ("backward", "loss", "severity"),
    [
        (IGNORING, "0.1 * Loss.apply(x)", "warning"),
        (IGNORING, "x.sum() - Loss.apply(x)", "warning"),
        # There the gradient that is ignored is 1.
        (IGNORING, "Loss.apply(x)", "information"),
        (IGNORING, "Loss.apply(x) + x.sum()", "information"),
        (f"grad * {IGNORING}", "0.1 * Loss.apply(x)", ""),
        ("0 * x", "Loss.apply(x)", "warning"),
    ],
)
def test_a_loss_whose_backward_does_not_use_the_gradient_that_it_is_given(
    backward: str, loss: str, severity: str, session: Session
) -> None:
    text = f"{HEAD}{function('Loss', 'x.square().mean()', backward, keeps='x')}"
    text += f"x = torch.linspace(1, 2, 5).requires_grad_()\n({loss}).backward()\n"
    report = session.look(text, "-q", command="doctor")
    found = [one for one in report.findings if one.rule == "GS601"]
    assert [one.severity for one in found] == ([severity] if severity else [])
    is_told = any("does not use the gradient" in one.message for one in found)
    assert is_told == (bool(severity) and backward == IGNORING)


ROUNDED = """
x = torch.linspace(-1.8, 1.6, 5).requires_grad_()
(Rounded.apply(x) * torch.linspace(1, 2, 5)).sum().backward()
"""


@pytest.mark.parametrize(
    ("backward", "is_used"),
    [
        ("(x.abs() < 1).float()", False),
        ("(x.abs() < 1) * grad", True),
        # What follows from the gradient otherwise than by a factor is meant.
        ("grad.clamp(-0.01, 0.01)", True),
        ("grad.sign()", True),
        ("grad / grad.norm()", True),
        ("(grad != 0).to(x)", True),
        ("torch.zeros_like(x)", True),
    ],
)
def test_a_substitute_for_a_derivative_uses_the_gradient_that_it_is_given(
    backward: str, is_used: bool, session: Session
) -> None:
    text = function("Rounded", "x.round()", backward, keeps="x")
    report = session.overheard(f"{HEAD}{text}{ROUNDED}")
    found = [one for one in report.findings if one.rule == "GS601"]
    assert [one.severity for one in found] == ([] if is_used else ["warning"])
    assert all("does not use the gradient" in one.message for one in found)
    assert isinstance(report.observations, Observations)
    (compared,) = report.observations.functions
    assert (compared.verdict == "wrong") != is_used


def test_a_step_size_that_is_learned_beside_a_substitute_is_meant(session: Session) -> None:
    text = f"""{HEAD}class Quantised(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, size):
        ctx.save_for_backward(x, size)
        return (x / size).round() * size
    @staticmethod
    def backward(ctx, grad):
        x, size = ctx.saved_tensors
        return grad, (grad * ((x / size).round() - x / size)).sum()
x = torch.linspace(-1.8, 1.6, 5).requires_grad_()
Quantised.apply(x, torch.tensor(0.3, requires_grad=True)).square().sum().backward()
"""
    report = session.overheard(text)
    assert isinstance(report.observations, Observations)
    assert [one.verdict for one in report.observations.functions] == ["meant"]
    assert not [one for one in report.findings if one.rule == "GS601"]


def test_functions_of_one_name_at_one_place_are_told_apart(session: Session) -> None:
    scaled = function("Scaled", "x.sin()", "grad * factor").replace("\n", "\n    ")
    text = f"""
import math
import torch
def made(factor):
    {scaled}
    return Scaled
x = torch.full((3,), 0.5, requires_grad=True)
loss = 0
for function in (made(math.cos(0.5)), made(7.0)):
    loss = loss + function.apply(x).sum()
loss.backward()
"""
    done = session.cli("doctor", str(session.write(text)))
    assert (done.status, "GS601" in done.out) == (1, True), done.out
