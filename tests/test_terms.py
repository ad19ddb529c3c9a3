"""Terms of a loss that do not go together, beside those that only look like it."""

from __future__ import annotations

import pytest

from tests.looking import Session

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y, net, head = torch.randn(8, 4), torch.randn(8), nn.Linear(4, 4), nn.Linear(4, 1)
gate = nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters(), gate], lr=0.01)
for _ in range(2):
    h = torch.tanh(net(x))
    value = head(h).squeeze(-1)
    policy = torch.distributions.Categorical(logits=net(x))
    log_prob = policy.log_prob(torch.arange(8) % 4)
    {lines}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

TERMS: dict[str, str] = {
    # One number for the batch, beside one for each sample.
    "det = h.sum(1).abs(); loss = ((value - y) ** 2 - det.sum()).mean()": "GS530",
    "kl = h.square().sum(); loss = (0.1 * kl + F.mse_loss(value, y, reduction='none')).mean()": (
        "GS530"
    ),
    # The mean of the batch, times a number for each sample; also one that a loss function takes.
    "loss = (-log_prob.mean() * y).sum()": "GS530",
    "loss = 0.5 * (F.mse_loss(value, y) * y.abs() / 2).mean()": "GS530",
    # Sample by sample; as many other numbers; what has history; another function of it.
    "loss = -(log_prob * y).mean() + (log_prob.mean() * torch.rand(5)).sum()": "",
    "loss = (value.mean() * gate).sum() + (value / value.mean().detach()).mean()": "",
    "loss = (log_prob.mean() * y).exp().mean() + value.mean() * y.mean()": "",
    # All of it is summed; or one for each sample is left; or it is the mean.
    "kl = h.square().sum(); loss = kl + F.mse_loss(value, y, reduction='sum')": "",
    "kl = h.square().sum(1); loss = (kl + (value - y) ** 2).mean()": "",
    "kl = h.square().mean(); loss = (kl + (value - y) ** 2).mean()": "",
    # Parameters, as many as samples; a baseline of the others; what goes into another function.
    "loss = ((value - y) ** 2 + gate.square().sum()).mean()": "",
    "loss = ((value.sum() - value) / 7 * y).mean()": "",
    "loss = torch.tanh(value + h.square().sum()).mean() + gate.sum()": "",
}


@pytest.mark.parametrize("lines", TERMS)
def test_which_terms_do_not_go_together(lines: str, session: Session) -> None:
    report = session.look(HEAD.format(lines=lines), "-q", command="doctor")
    found = {one.rule for one in report.findings if one.rule == "GS530"}
    assert found == ({TERMS[lines]} if TERMS[lines] else set())
