"""What the doctor says of an exception inside backward: who raised it, and which line leads there;
and that the program's traceback is python's own."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from gradscope.model import storage
from tests.conftest import python_says
from tests.looking import Session
from tests.own_functions import function

HEAD = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
x = torch.ones(3, requires_grad=True)
"""

OWN = """
class Own(torch.autograd.Function):
    runs = 0
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        Own.runs += 1
        if Own.runs > WELL:
            return ctx.mask * grad
        return grad * 2
"""

LOOP = """
net = nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(30):
    optimizer.zero_grad()
{}
    optimizer.step()
"""

UNWRITTEN = 'raise NotImplementedError("second derivative is not implemented"); None'

ONCE = """
from torch.autograd.function import once_differentiable
class {0}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x{1}
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]
"""


@dataclass(frozen=True)
class Raising:
    """A program, the expression that the finding is at, and words of its message and evidence."""

    program: str
    expression: str
    message: str
    evidence: str = ""
    rule: str = "GS410"


RAISING = {
    "a Function": Raising(
        OWN.replace("WELL", "0") + "y = Own.apply(x)\ny.sin().sum().backward()\n",
        "Own.apply(x)",
        "Backward of Own raised AttributeError.",
        "by `ctx.mask`",
    ),
    "a Function, at a call that is only glanced at": Raising(
        OWN.replace("WELL", "17") + LOOP.format("    Own.apply(net(x)).sum().backward()"),
        "Own.apply(net(x))",
        "Backward of Own raised AttributeError.",
    ),
    "a Function in the backward of another": Raising(
        OWN.replace("WELL", "0")
        + """
class Outer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            inner = ctx.saved_tensors[0].detach().requires_grad_()
            out = Own.apply(inner)
        return torch.autograd.grad(out, inner, grad)
Outer.apply(x).sum().backward()
""",
        "Outer.apply(x)",
        "Backward of Outer raised AttributeError.",
        "by `ctx.mask`",
    ),
    "a reentrant checkpoint": Raising(
        "runs = []\ndef part(x):\n    runs.append(1)\n    assert len(runs) < 2, 'again'\n"
        "    return x.sin()\n"
        "checkpoint(part, x, use_reentrant=True).sum().backward()\n",
        "checkpoint(part, x, use_reentrant=True)",
        "Backward of CheckpointFunction raised AssertionError.",
        "len(runs) < 2",
    ),
    "a checkpoint": Raising(
        "runs = []\ndef part(x):\n    runs.append(1)\n    assert len(runs) < 2, 'again'\n"
        "    return x.sin()\n"
        "checkpoint(part, x, use_reentrant=False).sum().backward()\n",
        "x.sin()",
        "What brings back a saved tensor of `x.sin()` raised AssertionError.",
        "len(runs) < 2",
    ),
    "a hook on a result": Raising(
        "def log(grad):\n    {}['layer']\ny = x.exp()\nz = y * 2\ny.register_hook(log)\n"
        "z.sum().backward()\n",
        "y.register_hook(log)",
        "The hook log raised KeyError.",
        "it gets the gradient of `x.exp()`",
    ),
    "a hook that is an object": Raising(
        "class Logger:\n    def __call__(self, grad):\n        raise ValueError('full')\n"
        "y = x.exp()\ny.register_hook(Logger())\ny.sum().backward()\n",
        "y.register_hook(Logger())",
        "The hook Logger.__call__ raised ValueError.",
    ),
    "a hook that is a part of a function": Raising(
        "import functools\ndef log(name, grad):\n    {}[name]\ny = x.exp()\n"
        "y.register_hook(functools.partial(log, 'a'))\ny.sum().backward()\n",
        "y.register_hook(functools.partial(log, 'a'))",
        "The hook log raised KeyError.",
    ),
    "a hook after the leaf has its gradient": Raising(
        "def step(leaf):\n    raise TypeError('set_to_non')\n"
        "x.register_post_accumulate_grad_hook(step)\n(x * 2).sum().backward()\n",
        "x.register_post_accumulate_grad_hook(step)",
        "The hook step raised TypeError.",
        "it gets the gradient of x",
    ),
    "what a hook returns after the leaf has its gradient": Raising(
        "net = nn.Linear(3, 2)\nnet.bias.register_post_accumulate_grad_hook(lambda p: p.grad)\n"
        "net(x).sum().backward()\n",
        "net.bias.register_post_accumulate_grad_hook(lambda p: p.grad)",
        "Torch, given what the hook returned, raised RuntimeError.",
        "it gets the gradient of bias",
    ),
    "a hook on several tensors": Raising(
        "def both(grads):\n    raise KeyError('both')\nz = x * 2\n"
        "torch.autograd.graph.register_multi_grad_hook([x, z], both)\nz.sum().backward()\n",
        "torch.autograd.graph.register_multi_grad_hook([x, z], both)",
        "The hook both raised KeyError.",
    ),
    "a hook on a module": Raising(
        "def log(module, given, taken):\n    given[5]\nnet = nn.Linear(3, 2)\n"
        "net.register_full_backward_hook(log)\nnet(x * 2).sum().backward()\n",
        "net.register_full_backward_hook(log)",
        "The hook log raised IndexError.",
        "by `given[5]`",
    ),
    "a hook on a node": Raising(
        "def log(sent, received):\n    raise KeyError('node')\ny = x.exp()\n"
        "y.grad_fn.register_hook(log)\n(y * 2).sum().backward()\n",
        "x.exp()",
        "The hook log raised KeyError.",
        "it gets the gradient of `x.exp()`",
    ),
    "an operation": Raising(
        "wide = torch.randn(4, 3, requires_grad=True)\ny = wide * 2\n"
        "q, r = torch.linalg.qr(y, mode='complete')\nq.sin().sum().backward()\n",
        "torch.linalg.qr(y, mode='complete')",
        "Backward of `torch.linalg.qr(y, mode='complete')` raised RuntimeError.",
        "mode='complete'",
    ),
    "the call": Raising(
        "y = x * 2\ny.backward(torch.ones(3, dtype=torch.cfloat))\n",
        "y.backward(torch.ones(3, dtype=torch.cfloat))",
        "The backward call raised RuntimeError.",
        "Mismatch in dtype",
    ),
    "once_differentiable": Raising(
        ONCE.format("Half", ".square() / 2")
        + "slope, = torch.autograd.grad((Half.apply(x) * x).sum(), x, create_graph=True)\n"
        "slope.square().sum().backward()\n",
        "Half.apply(x)",
        "Backward through a gradient raised RuntimeError.",
    ),
    "a Function that has no second derivative by its own words": Raising(
        f"""
{function("Slope", "2 * grad * x", UNWRITTEN, given="grad, x")}
{function("Square", "x * x", "Slope.apply(grad, x)", keeps="x")}
slope, = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
slope.square().sum().backward()
""",
        "Square.apply(x)",
        "Backward of Slope raised NotImplementedError.",
        "by `raise NotImplementedError",
    ),
    "a hook that found a NaN": Raising(
        "def check(grad):\n    assert grad.isfinite().all(), 'NaN'\n"
        "w = torch.zeros(3, requires_grad=True)\nw.register_hook(check)\n"
        "(w.sqrt() * 0).sum().backward()\n",
        "w.sqrt()",
        "Backward of `w.sqrt()` turns a finite gradient into NaN or infinity.",
        rule="GS102",
    ),
    "anomaly mode that found a NaN": Raising(
        "w = torch.zeros(3, requires_grad=True)\nwith torch.autograd.set_detect_anomaly(True):\n"
        "    (w.sqrt() * 0).sum().backward()\n",
        "w.sqrt()",
        "Backward of `w.sqrt()` turns a finite gradient into NaN or infinity.",
        rule="GS102",
    ),
}


@pytest.mark.parametrize("name", RAISING)
def test_an_exception_inside_backward_has_a_finding(name: str, session: Session) -> None:
    case = RAISING[name]
    done = session.told(HEAD + case.program, "doctor -o report.json -q")
    assert done.status == 1, done
    report = storage.load(session.folder / "report.json")
    (finding,) = (one for one in report.findings if one.severity != "information")
    assert (finding.rule, finding.message) == (case.rule, case.message)
    assert finding.location is not None
    assert finding.location.expression == case.expression
    assert case.evidence in " ".join(finding.evidence)
    named = re.match(r"(?:Backward of|The hook) ([\w.]+) raised", case.message)
    assert named is None or finding.subject == named[1]


BESIDE = """
left, net = nn.Linear(3, 3), nn.Linear(3, 3)
optimizer = torch.optim.SGD([*left.parameters(), *net.parameters()], lr=0.01)
y = net(x) + left(x).detach()
y.register_hook(lambda grad: grad[9])
y.sum().backward()
"""


def test_a_cut_that_cannot_be_the_reason_hides_no_exception(session: Session) -> None:
    report = session.look(HEAD + BESIDE, "-q", command="doctor")
    found = [(one.rule, one.message) for one in report.findings]
    assert found[0] == ("GS410", "The hook, a lambda, raised IndexError.")
    assert [rule for rule, _ in found[1:]] == ["GS303"]


def test_of_a_missing_second_derivative_basic_operations_are_the_remedy(session: Session) -> None:
    path = str(session.write(HEAD + RAISING["once_differentiable"].program))
    assert "such as basic operations" in session.cli("doctor", path).out


WITHOUT = OWN.replace("def backward(", "def backwards(") + "Own.apply(x).sum().backward()\n"


def test_a_function_without_a_backward_has_no_line_to_be_fixed(session: Session) -> None:
    assert session.told(HEAD + WITHOUT, "doctor -o report.json -q").status == 1
    (finding,) = storage.load(session.folder / "report.json").findings
    assert finding.location is not None
    assert finding.location.expression == "Own.apply(x)"
    assert finding.message == "Backward of Own raised NotImplementedError."
    assert "You must implement either the backward or vjp" in finding.evidence[0]
    assert "the line that raised" not in finding.remedy


@pytest.mark.parametrize("name", ["a Function", "a hook on a module"])
def test_the_traceback_is_pythons(name: str, session: Session) -> None:
    path = str(session.write(HEAD + RAISING[name].program))
    assert session.cli("doctor", path).err == python_says(path).err


CAUGHT = OWN.replace("WELL", "0") + (
    "try:\n    Own.apply(x).sum().backward()\nexcept AttributeError:\n    print('caught')\n"
    "(x * 2).sum().backward()\nprint('further')\n"
)


def test_an_exception_that_the_program_catches_is_information(session: Session) -> None:
    done = session.cli("doctor", str(session.write(HEAD + CAUGHT)))
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("caught\nfurther\n")
    assert "GS410 backward-raises · information" in done.out
    assert "raised AttributeError, and the program went on." in done.out
