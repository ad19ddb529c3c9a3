"""Calls that mean something else than they were written for: each is told at the line that is
marked, and nothing else is."""

from __future__ import annotations

import pytest

from tests.looking import Session, marked

CALLS = """
import torch, torch.nn as nn, torch.nn.functional as F
from torch.distributions import Bernoulli, Categorical, Normal
torch.manual_seed(0)

def train(net, loss, steps=3):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(net).backward()
        optimizer.step()

def parts(**modules):
    return nn.ModuleDict(modules)
"""

MISTAKEN = (
    CALLS
    + """
def thermostat(m):
    h = torch.tanh(m.body(torch.randn(20, 3)))
    policy = Normal(m.mu(h).squeeze(-1), 1.0)
    action = policy.sample()
    adv = -action.square() - m.value(h).squeeze(-1)
    return adv.pow(2).mean() - (policy.log_prob(action) * adv).mean()  # <- GS533
train(parts(body=nn.Linear(3, 6), mu=nn.Linear(6, 1), value=nn.Linear(6, 1)), thermostat)

"""
)

MEANT = (
    CALLS
    + """
def latents(m):  # an expectation over all values, and data that are no sample
    x = torch.randn(12, 5)
    choice = Categorical(logits=m.enc(x))
    score = Normal(m.dec.weight[None], 1.0).log_prob(x[:, None]).sum(-1)
    taught = m.w(x).sigmoid().squeeze(1) * choice.log_prob(torch.randint(0, 4, (12,)))
    action = choice.sample()
    policy = choice.log_prob(action) * (action == 2).float() + m.w.bias * choice.log_prob(action)
    return -((choice.probs * score).sum(-1) + taught + policy).mean()
train(parts(enc=nn.Linear(5, 4), dec=nn.Embedding(4, 5), w=nn.Linear(5, 1)), latents)

actor, critic = nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
a, c = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(3):  # what the critic gets of the actor's loss is cleared before its step
    state = torch.randn(16, 4)
    choice = Categorical(logits=actor(state))
    action = choice.sample()
    value, reward = critic(state).squeeze(1), (action == 1).float()
    a.zero_grad()
    (-choice.log_prob(action) * (reward - value)).mean().backward(retain_graph=True)
    a.step()
    c.zero_grad()
    (reward - value).pow(2).mean().backward()
    c.step()

def straight(m):
    z = m.e(torch.randn(10, 6))
    q = m.codes(torch.cdist(z, m.codes.weight).argmin(1))
    s = z + (q - z).detach()
    r = z + (z.round() - z).detach()
    t = q.detach() + z - z.detach()
    pull = F.mse_loss(q, z.detach()) + F.mse_loss(s.detach(), z) + (s.detach() - z).pow(2).mean()
    return m.d(s + r + t).pow(2).mean() + pull
train(parts(e=nn.Linear(6, 4), codes=nn.Embedding(9, 4), d=nn.Linear(4, 6)), straight)

"""
)


@pytest.mark.parametrize("text", [MISTAKEN, MEANT], ids=["such calls", "those that look like them"])
def test_calls_that_mean_something_else(text: str, session: Session) -> None:
    assert sorted(session.warned(text, "--steps", "all")) == sorted(marked(text))
