"""Long runs: a step that goes wrong late is reported with its number, line and operation, although
most steps before it were looked at only briefly; and as a full look at every step reports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from gradscope.model.observations import Finding
from gradscope.model.report import GradientInfo, Graph, Report
from tests.looking import Session
from tests.test_examination import seen
from tests.test_unchanged import TRAINING, alone

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
"""


def training(loss: str, data: str = "pass", after: str = "pass") -> str:
    """A program of 60 steps, with these lines in each of them."""
    return f"""{HEAD}
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for step in range(1, 61):
    x = torch.rand(16, 4)
    {data}
    out = net(x)
    {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {after}
"""


def wide(data: str = "pass", after: str = "pass") -> str:
    """One of 20 steps, of whose large results a glance reads a part."""
    return f"""{HEAD}
net = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
net[0].weight.data[9, 5] = 100
for step in range(1, 21):
    x = torch.rand(256, 64) + 1
    {data}
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {after}
"""


def low(data: str = "pass", after: str = "pass") -> str:
    """The same with scores of fewer rows than columns."""
    return f"""{HEAD}
net = nn.Linear(64, 192)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
mask = torch.zeros(128, 192, dtype=torch.bool)
for step in range(1, 21):
    x = torch.rand(128, 64) + 1
    {data}
    scores = net(x).masked_fill(mask, float("-inf"))
    loss = torch.softmax(scores, dim=1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {after}
"""


@dataclass(frozen=True)
class Late:
    """A program, and what is to be found in it."""

    text: str
    rule: str
    step: int
    expression: str
    op: str = ""


LATE = {
    "a root of 0": Late(
        training("loss = torch.sqrt((out * (step != 37)) ** 2).mean()"),
        *("GS102", 37, "torch.sqrt((out * (step != 37)) ** 2)", "SqrtBackward0"),
    ),
    "a branch that is not taken": Late(
        training("y = out * (step != 41); loss = torch.where(y != 0, y.abs().log(), y).mean()"),
        *("GS102", 41, "y.abs().log()", "LogBackward0"),
    ),
    # What hides a NaN or an infinity from all that comes after it.
    **{
        f"hidden by {hides}": Late(
            training(f"y = (out * (step != 41)).abs(); z = y.log(); {hides}; loss = z.mean()"),
            *("GS102", 41, "y.log()", "LogBackward0"),
        )
        for hides in ("z = torch.maximum(z, out)", "z.clamp_(min=-5)")
    },
    "the derivative of a derivative": Late(
        f"""{HEAD}
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
for step in range(1, 50):
    x = torch.rand(16, 4).requires_grad_()
    size = (x * (step != 37)).norm(dim=1, keepdim=True)
    (gradient,) = torch.autograd.grad((net(x) * size).sum(), x, create_graph=True)
    gradient.pow(2).mean().backward()
    net.zero_grad()
""",
        *("GS102", 74, "(x * (step != 37)).norm(dim=1, keepdim=True)", "DivBackward0"),
    ),
    "the forward pass of a custom Function": Late(
        f"""{HEAD}
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        scaled = x.view(3, 1) / (factor * 2)
        return torch.where(scaled > 9, scaled, scaled * 3).flatten()
    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, None
w = nn.Parameter(torch.ones(3))
for step in range(1, 50):
    Own.apply(w, torch.tensor(float(step != 30))).sum().backward()
    w.grad = None
""",
        *("GS101", 30, "Own.apply(w, torch.tensor(float(step != 30)))", "Own"),
    ),
    "a logarithm of 0": Late(
        training("loss = -torch.log(torch.sigmoid(out) * (step != 50)).mean()"),
        *("GS101", 50, "torch.log(torch.sigmoid(out) * (step != 50))", "LogBackward0"),
    ),
    "one number of many that is not finite": Late(
        wide("x[77, 5] *= step != 17; x = x / x"), *("GS105", 17, "x / x", "AddmmBackward0")
    ),
    "one weight of many that is not finite": Late(
        wide(after="net[2].weight.data[9, 3].div_(torch.tensor(float(step != 12)))"),
        *("GS105", 13, "", "AddmmBackward0"),
    ),
    "one result of many that is too large": Late(
        wide("x[77, 5] *= 1e38 if step == 17 else 1"), *("GS101", 17, "net(x)", "AddmmBackward0")
    ),
    **{
        f"two large results in {made}": Late(
            wide().replace(
                "loss = net(x).pow(2).mean()",
                f"y = net(x) * ({size} if step == 17 else 1.0); loss = ({made}).mean()",
            ),
            *("GS101", 17, made, op),
        )
        for made, size, op in (
            ("y + y", 2e38, "AddBackward0"),
            ("y - y.neg()", 2e38, "SubBackward0"),
            ("y @ y.T", 1e20, "MmBackward0"),
        )
    },
    "a layer that was given a hook": Late(
        training(
            "loss = out.mean()",
            data="if step == 21: net[2].register_forward_hook(lambda *_: _[2] / (step != 37))",
        ),
        *("GS101", 37, "_[2] / (step != 37)", "DivBackward0"),
    ),
    "one number of more columns than rows": Late(
        low("x[77, 5] *= step != 17; x = x / x"), *("GS105", 17, "x / x", "AddmmBackward0")
    ),
    "one row of many scores that is masked": Late(
        low("mask[77] = step == 17"),
        *("GS101", 17, "torch.softmax(scores, dim=1)", "SoftmaxBackward0"),
    ),
    "float16": Late(
        f"""{HEAD}
w = nn.Parameter(torch.ones(3))
for step in range(1, 40):
    half = w.half() * torch.tensor(60000.0 if step == 19 else 1.0).half()
    (half + half).float().mean().backward()
    w.grad = None
""",
        *("GS101", 19, "half + half", "AddBackward0"),
    ),
    "a result changed in place": Late(
        training(
            "act = torch.exp(out); other = act if step == 33 else act * 1; other += 1; "
            "loss = act.mean()"
        ),
        *("GS401", 33, "other += 1", "ExpBackward0"),
    ),
    "a graph that was freed": Late(
        training("loss = out.pow(2).mean() + (kept if step == 25 else 0)", after="kept = loss"),
        *("GS402", 25, "out.pow(2)", "PowBackward0"),
    ),
}


def examined(session: Session, text: str, *options: str) -> Report:
    """The doctor's report of a whole run."""
    return session.overheard(text, "--steps", "all", *options)


def place(finding: Finding) -> str:
    """The expression that a finding points at."""
    return "" if finding.location is None else finding.location.expression


@pytest.mark.parametrize("name", LATE)
def test_a_late_step_is_reported_as_a_full_look_reports_it(name: str, session: Session) -> None:
    case = LATE[name]
    report = examined(session, case.text)
    finding = report.findings[0]
    op = finding.node.op if finding.node else ""
    assert (finding.rule, finding.step, op) == (case.rule, case.step, case.op)
    assert place(finding) == case.expression or not case.expression
    assert seen(report).glanced >= case.step // 4  # or it would not tell anything
    thorough = examined(session, case.text, "--thorough")
    assert seen(thorough).glanced == 0
    assert report.findings == thorough.findings
    assert seen(report).steps == seen(thorough).steps
    assert seen(report).saved == seen(thorough).saved
    assert without_values(report.graph) == without_values(thorough.graph)
    assert [read for read, full in numbers(report, thorough) if read != full] == []


def without_values(graph: Graph) -> object:
    """The graph as plain data, without the values of forward tensors: a glance keeps none."""
    data: dict[str, Any] = msgspec.to_builtins(graph)
    made = [info for node in data["nodes"] for info in node.get("outputs", ())]
    for info in filter(None, [*made, *(leaf["tensor"] for leaf in data["leaves"])]):
        info.pop("values", None)
    return data


def numbers(report: Report, thorough: Report) -> list[tuple[GradientInfo, GradientInfo]]:
    """The gradients of a report beside those of another one, where somebody read them."""
    (brief,), (full,) = report.passes, thorough.passes
    pairs = list(zip(brief.edges, full.edges, strict=True))
    for rows in zip(brief.upstream, full.upstream, strict=True):
        pairs += zip(*rows, strict=True)
    found = [(brief.gradients[one], full.gradients[other]) for one, other in pairs]
    return [(one, other) for one, other in found if not one.is_unread]


def test_an_overflow_that_was_not_seen_is_said_and_not_guessed(session: Session) -> None:
    text = f"""{HEAD}
w = nn.Parameter(torch.full((3,), 1e-30))
v = nn.Parameter(torch.ones(3))
for step in range(1, 50):
    factor = torch.tensor(1e30 if step == 28 else 1.0)
    loss = ((w * factor) * factor).sum() + v.sum()
    loss.backward()
    w.grad = v.grad = None
"""
    (finding,) = examined(session, text).findings
    assert (finding.rule, finding.step, finding.node) == ("GS102", 28, None)
    assert "--thorough" in finding.remedy
    assert finding.evidence == ("1 leaf with such a gradient: w",)
    (finding,) = examined(session, text, "--thorough").findings
    assert (finding.rule, finding.step, place(finding)) == ("GS102", 28, "w * factor")


def test_a_glance_reads_small_norms_as_exactly_as_a_full_look(session: Session) -> None:
    text = f"""{HEAD}
small = nn.Parameter(torch.ones(100))
for step in range(1, 9):
    (small * 2.82e-23).sum().backward()
    small.grad = None
"""
    seen = examined(session, text).observations
    assert seen is not None
    assert [step.norm for step in seen.steps] == pytest.approx([2.82e-22] * 8, rel=1e-4, abs=0)


def test_a_call_that_python_has_learned_is_at_no_new_place(session: Session) -> None:
    # Python 3.11 stands at another instruction from the eighth time on.
    text = training("loss = (out.t() * len(x)).mean()").replace("61", "13")
    assert seen(examined(session, text)).glanced == 12 - 6 - 1


def test_a_long_training_comes_to_the_same_bits(session: Session) -> None:
    path = str(session.write(TRAINING.replace("range(5)", "range(30)")))
    expected = alone(path)
    done = session.cli("doctor", path, "--steps", "all", "-q")
    assert done.out.startswith(expected)
    assert "of them briefly" in done.out


def test_of_very_many_steps_the_first_and_the_last_are_kept(session: Session) -> None:
    report = examined(
        session,
        "import torch\nw = torch.ones(2, requires_grad=True)\n"
        "for step in range(1200): w.sum().backward(); w.grad = None\n",
    )
    numbers = [step.number for step in seen(report).steps]
    assert numbers == [*range(1, 501), *range(701, 1201)]
    assert seen(report).watched == 1200


def test_a_step_of_an_optimizer_that_fails_does_not_end_the_watching(session: Session) -> None:
    report = examined(
        session,
        f"""{HEAD}
w = nn.Parameter(torch.ones(3))
class Broken(torch.optim.SGD):
    @torch.no_grad()
    def step(self):
        raise ValueError
optimizer = Broken([w], lr=0.1)
for step in range(3):
    x = torch.tensor([float(step != 2), 1.0, 2.0])
    loss = torch.sqrt(w * x).sum()
    loss.backward()
    try:
        optimizer.step()
    except ValueError:
        pass
""",
    )
    (finding,) = report.findings
    assert (finding.rule, finding.step) == ("GS102", 3)


COUNTING = f"""{HEAD}
import gc
from torch.nn.modules import module
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters())
for step in range(1, 601):
    loss = net(torch.rand(2, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    if step in (200, 600):
        gc.collect()
        tables = [module._global_forward_pre_hooks, module._global_forward_hooks]
        tables += [one._forward_hooks for one in net.modules()]
        tables += [one._backward_hooks or () for one in net.parameters()]
        print(len(gc.get_objects()), sum(map(len, tables)))
"""


def test_what_is_remembered_of_a_long_run_does_not_grow(session: Session) -> None:
    done = session.told(COUNTING, "doctor --steps all -q")
    (early, hooks), (late, same) = (map(int, line.split()) for line in done.out.split("\n")[:2])
    assert hooks == same
    # Of an entry of the journal and a clipping a step, some objects each, there is a bound later.
    assert late - early < 12 * 400


MADE_ANEW = f"""{HEAD}
import gc
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 1), *(nn.Identity() for _ in range(400)))
    def forward(self, x):
        return nn.Tanh()(self.layers(x))
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(100):
    loss = nn.MSELoss()(net(torch.rand(2, 4)), torch.zeros(2, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
gc.collect()
print(sum(type(one).__name__ == "RootModule" for one in gc.get_objects()))
"""


def test_modules_that_are_made_for_one_call_are_forgotten(session: Session) -> None:
    done = session.cli("doctor", str(session.write(MADE_ANEW)), "--steps", "all", "-q")
    # Those of the last 20,000 to 40,000 calls are remembered, 403 calls a step.
    assert 40 < int(done.out.split("\n")[0]) < 100
