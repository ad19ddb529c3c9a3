"""Steps of optimizers that make NaN or infinity: which are told, with what, and which are not."""

from __future__ import annotations

import pytest

from gradscope.model.observations import Finding
from tests.looking import Session

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randn(8, 1)
def nothing(step):
    pass
def train(net, optimizer, steps=12, scale=100.0, before=nothing, after=nothing):
    for step in range(steps):
        optimizer.zero_grad()
        (net(x.to(net.weight.dtype)).float() - y).square().mean().mul(scale).backward()
        before(step)
        optimizer.step()
        after(step)
def large(optimizer, last):
    def at(step):
        optimizer.param_groups[0]["lr"] = 3e38 if step == last else 1e-3
    return at
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
"""

TOLD: dict[str, tuple[str, int, str]] = {
    # The squares of such gradients are 0 in float16, and so is eps.
    "net = nn.Linear(4, 1).half()\n"
    "optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)\n"
    "train(net, optimizer, scale=0.01)": ("Adam", 1, "eps=1e-08 is 0 in float16"),
    # At a step that is looked at closely.
    "train(net, optimizer, before=large(optimizer, 2))": ("SGD", 3, "SGD with lr=3e+38"),
    # The last step of all, which no backward call follows.
    "train(net, optimizer, 3, before=large(optimizer, 2))": ("SGD", 3, "SGD with lr=3e+38"),
    # A rate that is no number.
    "ramp = lambda step: (torch.tensor(float(step)) / 0).item()\n"
    "plan = torch.optim.lr_scheduler.LambdaLR(optimizer, ramp)\n"
    "train(net, optimizer, after=lambda step: plan.step())": ("SGD", 1, "SGD with lr=NaN"),
}
"""Programs, the optimizer that is told, after which backward call, and a line of the evidence."""


def found(session: Session, text: str) -> list[Finding]:
    """The warnings and errors of a program."""
    report = session.look(HEAD + text, "-q", command="doctor")
    return [finding for finding in report.findings if finding.severity != "information"]


@pytest.mark.parametrize("text", TOLD)
def test_a_step_that_spoils_parameters_is_told(text: str, session: Session) -> None:
    optimizer, call, line = TOLD[text]
    (finding,) = found(session, text)
    assert (finding.rule, finding.step) == ("GS106", call)
    assert finding.location is not None
    assert finding.location.expression.startswith(f"torch.optim.{optimizer}(")
    assert finding.subject in ("weight", "bias")
    assert line in "\n".join(finding.evidence)


LEFT_ALONE = {
    # A parameter that was infinite before, as a mask is.
    "net.mask = nn.Parameter(torch.tensor([0.0, -torch.inf]))\n"
    "optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)\n"
    "def before(step): net.mask.grad = torch.zeros(2)\n"
    "train(net, optimizer, before=before)": [],
    # Gradients that were finite when they came, and that the program spoilt.
    "def before(step): net.weight.grad.div_(float(step != 3))\n"
    "train(net, optimizer, before=before)": ["GS105"],
    # A parameter that the program spoilt itself, after the step.
    "def after(step): net.weight.data.div_(float(step != 14))\n"
    "train(net, optimizer, 20, after=after)": ["GS105"],
    # An eps that the dtype holds.
    "net = nn.Linear(4, 1).half()\n"
    "train(net, torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-4), scale=0.01)": [],
    "net = nn.Linear(4, 1).bfloat16()\n"
    "train(net, torch.optim.Adam(net.parameters(), lr=1e-3), scale=0.01)": [],
}


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_no_step_has_spoilt_is_no_fault_of_one(text: str, session: Session) -> None:
    assert [finding.rule for finding in found(session, text)] == LEFT_ALONE[text]
