"""``gradscope check --step``: what a step does to the loss, beside plain torch in float64."""

from __future__ import annotations

import copy
import runpy
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import torch

from gradscope.errors import ReportError
from gradscope.model.invariants import check
from gradscope.model.report import Report
from gradscope.model.studies import LeafStep, StepVerdict, TakenStep
from tests.looking import Session

HEAD = """
import copy
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(24, 4)
y = x.sum(1, keepdim=True)
def loss_of(model, part=slice(None)):
    kind = next(model.parameters()).dtype
    return F.mse_loss(model(x[part].to(kind)), y[part].to(kind))
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
"""
LOOK = """
start, state = copy.deepcopy(model), torch.get_rng_state()
loss = loss_of(model)
"""
USUAL = f"{LOOK}loss.backward()\nopt.step()\n"
"""Such a program ends with the step, so that plain python leaves what it made of the model."""


def taken(session: Session, text: str, *arguments: str) -> tuple[Report, TakenStep]:
    """What is found of the step of a program."""
    report = session.look(text, "--step", *arguments, command="check")
    assert report.checks is not None
    assert report.checks.step is not None
    return report, report.checks.step


def by_name(report: Report, step: TakenStep) -> dict[str, LeafStep]:
    """What it did to each leaf."""
    names = [leaf.names[0].removeprefix("model.") for leaf in report.graph.leaves]
    return {names[one.leaf]: one for one in step.leaves}


@dataclass
class Plain:
    """The same by torch alone, in float64, of a program that python has run."""

    loss: float
    actual: float
    gradients: dict[str, torch.Tensor]
    changes: dict[str, torch.Tensor]
    sizes: dict[str, float]

    @classmethod
    def of(cls, path: str) -> Plain:
        """What it did."""
        left = runpy.run_path(path)

        def at(model: Any) -> torch.Tensor:
            torch.set_rng_state(left["state"])
            found: torch.Tensor = left["loss_of"](model)
            return found

        model = copy.deepcopy(left["start"]).double()
        moved = copy.deepcopy(left["start"]).double()
        after = dict(left["model"].named_parameters())
        named = {name: one for name, one in model.named_parameters() if one.requires_grad}
        changes = {
            name: after[name].detach().double() - one.detach() for name, one in named.items()
        }
        loss = at(model)
        slopes = torch.autograd.grad(loss, list(named.values()))
        with torch.no_grad():
            for name, one in moved.named_parameters():
                one.copy_(after[name].double())
            actual = float(at(moved)) - loss.item()
        sizes = {name: float(one.detach().norm()) for name, one in named.items()}
        return cls(loss.item(), actual, dict(zip(named, slopes, strict=True)), changes, sizes)

    def product(self, name: str) -> float:
        """Of the gradient of a parameter and its change."""
        return float((self.gradients[name] * self.changes[name]).sum())


SGD = "opt = torch.optim.SGD(model.parameters(), lr={})\n"
ACCUMULATED = """
for part in (slice(8, 16), slice(16, 24)):
    loss_of(model, part).backward()
opt.step()
"""
BY_HAND = """
with torch.no_grad():
    for one in model.parameters():
        one -= 0.05 * one.grad
        one.grad = None
"""
CLOSURE = """
def closure():
    opt.zero_grad()
    loss = loss_of(model)
    loss.backward()
    return loss
start, state = copy.deepcopy(model), torch.get_rng_state()
opt.step(closure)
"""
HOOKS = """
each = {one: torch.optim.SGD([one], lr=0.05) for one in model.parameters()}
for one in each:
    one.register_post_accumulate_grad_hook(lambda one: each[one].step())
"""
SCALER = """
scaler = torch.amp.GradScaler("cpu")
scaler.scale(loss).backward()
scaler.step(opt)
scaler.update()
"""
CASES: dict[str, tuple[str, StepVerdict]] = {
    "SGD": (SGD.format(0.05) + USUAL, "follows"),
    "a rate far too high": (SGD.format(30) + USUAL, "too long"),
    "momentum of a step before": (
        "opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)\n"
        "for one in model.parameters():\n    one.grad = torch.full_like(one, -20)\n"
        "opt.step()\nopt.zero_grad()\n" + USUAL,
        "uphill",
    ),
    "Adam": ("opt = torch.optim.Adam(model.parameters(), lr=0.01)\n" + USUAL, "follows"),
    "weight decay": (
        "opt = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=50)\n" + USUAL,
        "uphill",
    ),
    "the wrong sign": (
        "opt = torch.optim.SGD(model.parameters(), lr=0.05, maximize=True)\n" + USUAL,
        "uphill",
    ),
    "LBFGS": (
        "opt = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)\n" + CLOSURE,
        "follows",
    ),
    "by hand": (f"{LOOK}loss.backward()\n{BY_HAND}", "follows"),
    "by hand, through data": (
        f"{LOOK}loss.backward()\nfor one in model.parameters():\n    one.data += 0.05 * one.grad\n",
        "uphill",
    ),
    "in hooks": (f"{HOOKS}{LOOK}loss.backward()\n", "follows"),
    "clipped": (
        f"{SGD.format(0.05)}{LOOK}loss.backward()\n"
        "nn.utils.clip_grad_norm_(model.parameters(), 0.01)\nopt.step()\n",
        "follows",
    ),
    "accumulated": (f"{SGD.format(0.05)}{LOOK}loss.backward()\n{ACCUMULATED}", "follows"),
    "two optimizers of the same": (
        f"{SGD.format(0.05)}two = torch.optim.Adam(model.parameters(), lr=0.01)\n"
        f"{LOOK}loss.backward()\nopt.step()\ntwo.step()\n",
        "follows",
    ),
    "an optimizer of one's own": (
        "class Own(torch.optim.Optimizer):\n"
        "    def step(self):\n"
        "        with torch.no_grad():\n"
        "            for one in self.param_groups[0]['params']:\n"
        "                one -= 0.05 * one.grad\n"
        "opt = Own(model.parameters(), {'lr': None, 'momentum': (0.9, 0.99)})\n" + USUAL,
        "follows",
    ),
    "one rate is 0": (
        "opt = torch.optim.SGD([{'params': model[0].parameters(), 'lr': 0.0},\n"
        "                       {'params': model[2].parameters()}], lr=0.05)\n" + USUAL,
        "follows",
    ),
    "every rate is 0": (SGD.format(0) + USUAL, "no change"),
    "not in the optimizer": (
        "opt = torch.optim.SGD(model[2].parameters(), lr=0.05)\n" + USUAL,
        "follows",
    ),
    "dropout": ("model.insert(2, nn.Dropout(0.5))\n" + SGD.format(0.05) + USUAL, "follows"),
    "batch norm": ("model.insert(1, nn.BatchNorm1d(8))\n" + SGD.format(0.05) + USUAL, "follows"),
    "a GradScaler": (f"{SGD.format(0.05)}{LOOK}{SCALER}", "follows"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_that_of_plain_torch(name: str, session: Session) -> None:
    text, verdict = CASES[name]
    report, step = taken(session, HEAD + text)
    plain = Plain.of(str(session.folder / "program.py"))
    leaves = by_name(report, step)
    assert step.verdict == verdict
    assert leaves.keys() == plain.gradients.keys()
    assert step.loss == pytest.approx(plain.loss)
    if verdict != "no change":
        assert step.predicted == pytest.approx(sum(map(plain.product, leaves)))
        assert step.actual == pytest.approx(plain.actual, rel=1e-6)
    for parameter, one in leaves.items():
        change, gradient = plain.changes[parameter], plain.gradients[parameter]
        assert one.product == pytest.approx(plain.product(parameter), abs=1e-12)
        assert one.change == pytest.approx(float(change.norm()))
        assert one.gradient == pytest.approx(float(gradient.norm()), abs=1e-12)
        assert one.size == pytest.approx(plain.sizes[parameter])


def test_the_fraction_that_does_what_the_gradient_says_was_tried(session: Session) -> None:
    text = HEAD + CASES["a rate far too high"][0]
    _, step = taken(session, text)
    part = float(step.fraction or 0)
    path = session.folder / "program.py"
    changes = {}
    for share in (part, 2 * part):
        path.write_text(text.replace("lr=30", f"lr={30 * share}"), "utf-8")
        changes[share] = Plain.of(str(path)).actual / (float(step.predicted) * share)
    assert changes[part] >= 0.5 > changes[2 * part]


def test_a_loss_that_is_not_a_number_does_not_rise(session: Session) -> None:
    text = """
    import torch
    w = torch.ones(1, requires_grad=True)
    opt = torch.optim.SGD([w], lr=3)
    w.log().sum().backward()
    opt.step()
    """
    done = session.cli("check", "--step", str(session.write(text)))
    assert "was nan: the loss is not a number after it. 1/4 of the" in done.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("start", "loss", "moved", "verdict", "fraction"),
    [
        # Half of the step does what the gradient says, a quarter does not.
        ("0.0", "-w + 0.5 * (2 * torch.pi * w).sin() ** 2 + 2 * w**8", "1.0", "too long", 0.5),
        # Along sqrt the loss falls slower and slower, and no shorter step lowers it by more.
        ("1e-4", "-w.sqrt()", "w.data - 0.5 * w.grad", "falls", None),
    ],
)
def test_no_part_of_a_step_is_passed_over(
    start: str, loss: str, moved: str, verdict: str, fraction: float | None, session: Session
) -> None:
    text = f"import torch\nw = torch.tensor([{start}], requires_grad=True)\n"
    text += f"({loss}).sum().backward()\nw.data.copy_(torch.as_tensor({moved}))\n"
    _, step = taken(session, text)
    assert (step.verdict, step.fraction) == (verdict, fraction)


def test_the_next_step_of_an_optimizer_is_another(session: Session) -> None:
    text, _ = CASES["LBFGS"]
    _, once = taken(session, HEAD + text)
    _, twice = taken(session, f"{HEAD}{text}opt.step(closure)\n")
    assert once == twice


def test_it_is_not_waited_for_without_end(session: Session) -> None:
    text = HEAD + "for _ in range(300):\n    loss_of(model).backward()\nprint('the end')"
    path = str(session.write(text))
    done = session.cli("check", "--step", path)
    assert (
        "nothing changed the leaves of this graph in place, in 256 more backward calls" in done.out
    )
    assert "the end" not in done.out
    assert "stopped at backward call 257" in done.err


def test_a_step_across_the_gradient(session: Session) -> None:
    text = """
    import torch
    w = torch.tensor([1.0, 0.0], requires_grad=True)
    (w * w).sum().backward()
    with torch.no_grad():
        w[1] += 0.5
    """
    _, step = taken(session, text)
    assert (step.verdict, step.predicted, step.actual) == ("not measured", 0.0, 0.25)


SAID = {
    "lr": ("SGD", "SGD (lr 0.05) at program.py:"),
    "momentum": ("momentum of a step before", "SGD (lr 0.02, momentum 0.9)"),
    "how much too long": ("a rate far too high", "times too long"),
    "uphill": ("the wrong sign", "the step goes uphill"),
    "decay": ("weight decay", "lr 0.01, weight_decay 50"),
    "hooks": ("in hooks", "step: SGD (lr 0.05)"),
    "clipped": ("clipped", " times as long (clipped or scaled)"),
    "of several": ("accumulated", ".grad at the step was not the gradient of this call: cosine"),
    "closure": ("LBFGS", "2 more backward calls came before the step was over"),
    "two of the same": (
        "two optimizers of the same",
        "step: SGD (lr 0.05) at program.py:18, Adam (lr 0.01) at program.py:19",
    ),
    "own": ("an optimizer of one's own", "step: Own at program.py:"),
    "rate 0": ("one rate is 0", "did not move: 0.bias, 0.weight: SGD (lr 0) at program.py:18"),
    "not held": ("not in the optimizer", "0.bias, 0.weight: held by no optimizer that stepped"),
    "no change": ("every rate is 0", "the leaves are what they were before the step"),
}


OTHERS = {
    "no step": (
        "loss_of(model).backward()",
        "nothing changed the leaves of this graph in place before the program ended",
    ),
    "another model's": (
        "other = copy.deepcopy(model)\nopt = torch.optim.SGD(other.parameters(), lr=1)\n"
        "loss_of(model).backward()\nopt.step()",
        "before the program ended; SGD (lr 1) at program.py:15 holds none of them",
    ),
    "new tensors": (
        "w = torch.zeros(4, 1, requires_grad=True)\n(x @ w - y).square().mean().backward()\n"
        "w = (w - 0.1 * w.grad).detach().requires_grad_()\n((x @ w).sum()).backward()",
        "nothing changed the leaves of this graph in place, in 1 more backward call",
    ),
    "emptied": (
        SGD.format(1) + "loss_of(model).backward()\nopt.zero_grad()\nopt.step()",
        "0.weight: no .grad at the step",
    ),
    "not finite": (
        SGD.format("float('inf')") + "loss_of(model).backward()\nopt.step()",
        "step not measured: it leaves numbers that are not finite",
    ),
    "cannot be run again": (
        SGD.format(1) + "from torch.utils.checkpoint import checkpoint\n"
        "hidden = checkpoint(model[0], x.requires_grad_(), use_reentrant=True)\n"
        "model[2](hidden).sum().backward()\nopt.step()",
        "step not measured: ",
    ),
}


@pytest.mark.parametrize("name", [*SAID, *OTHERS])
def test_it_is_told_in_words(name: str, session: Session) -> None:
    case, words = (SAID | OTHERS)[name]
    text = CASES[case][0] if name in SAID else case
    done = session.told(HEAD + text, "check --step")
    assert words in done.out.replace("\n", " ").replace("model.", "")
    assert name not in SAID or done.status == 0


LOOP = (
    HEAD
    + SGD.format(0.05)
    + """
for step in range(4):
    opt.zero_grad()
    loss = loss_of(model)
    loss.backward()
    opt.step()
    print(step, loss.item())
"""
)


def test_the_program_is_stopped_after_the_step(session: Session) -> None:
    done = session.told(LOOP, "check --step --call 2 -o report.json")
    assert [line.split()[0] for line in done.out.splitlines()] == ["0", "1"]
    line = next(n for n, text in enumerate(LOOP.strip().split("\n"), 1) if "F.mse_loss" in text)
    assert (
        f"stopped after the step that follows backward call 2, before program.py:{line}" in done.err
    )


def test_a_step_of_a_leaf_that_is_not_there_is_refused(session: Session) -> None:
    report = session.look(LOOP, "--step", command="check")
    checks = report.checks
    assert checks is not None
    assert checks.step is not None
    broken = msgspec.structs.replace(checks.step, leaves=(LeafStep(4, 0.0, 0.0, 0.0, 0.0),))
    wrong = msgspec.structs.replace(checks, step=broken)
    with pytest.raises(ReportError, match=r"checks\.step"):
        check(msgspec.structs.replace(report, checks=wrong))


MOVED = {
    "freed": ("model[0].weight.untyped_storage().resize_(0)\n", "its memory was given back"),
    "widened": ("model.double()\nopt.step()\n", "another shape, dtype or device"),
}


@pytest.mark.parametrize("name", MOVED)
def test_a_leaf_that_cannot_be_compared_is_said(name: str, session: Session) -> None:
    text, words = MOVED[name]
    end = "x = model[2](torch.ones(8, dtype=model[2].weight.dtype)).sum()\nx.backward()\n"
    path = str(session.write(f"{HEAD}{SGD.format(0.1)}loss_of(model).backward()\n{text}{end}"))
    done = session.cli("check", "--step", path)
    assert words in done.out.replace("\n", " ")
    assert done.status == 0


INNER = """
import gc
import torch
w = torch.ones(5000, requires_grad=True)
for _ in range({}):
    torch.autograd.grad(w.square().sum(), w, create_graph=True)
known = (one for one in gc.get_objects() if isinstance(one, torch.Tensor))
print("held:", sum(one.dtype == torch.float64 for one in known))
"""


def test_of_many_inner_calls_little_is_held(session: Session) -> None:
    held = []
    for count in (3, 6):
        done = session.cli("check", "--step", str(session.write(INNER.format(count))))
        held.append(next(line for line in done.out.splitlines() if line.startswith("held:")))
    assert held[0] == held[1]
