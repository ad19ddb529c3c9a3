"""Loops that look like mistakes and are none, in one program of many short trainings; and clipping
in its place."""

from __future__ import annotations

from tests.looking import Session

HEAD = """\
import torch, torch.nn as nn, torch.nn.functional as F
from torch.optim import Adam, SGD
from torch.utils.data import DataLoader
torch.manual_seed(0)
clip, data = nn.utils.clip_grad_norm_, DataLoader(torch.randn(24, 4), batch_size=3)

def part(out=1, into=4):
    return nn.Sequential(nn.Linear(into, 6), nn.Tanh(), nn.Linear(6, out))

def bce(scores, value):
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, value))

def loss_of(net, n=1):
    return net(torch.randn(6, 4)).pow(2).mean() / n

def learn(net, optimizer, loss=loss_of, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        loss(net).backward()
        optimizer.step()
"""

HEALTHY = """
g, d = part(2), part(1, 2)
g_optimizer, d_optimizer, spare = (Adam(one.parameters()) for one in (g, d, g))
for step in range(16):  # the critic's turn has not come for long; an optimizer that none needs
    fake = g(torch.randn(6, 4))
    g_optimizer.zero_grad()
    (bce(d(fake), 1.0) + fake.pow(2).mean()).backward()
    g_optimizer.step()
    if step > 12:
        d_optimizer.zero_grad()
        (bce(d(torch.randn(6, 2)), 1.0) + bce(d(fake.detach()), 0.0)).backward()
        d_optimizer.step()
frozen, prompt = part(), nn.Parameter(torch.randn(6, 4))
left, tuned = Adam(frozen.parameters()), Adam([prompt])
learn(frozen, tuned, lambda m: m(prompt).pow(2).mean(), steps=12)
hand, other = part(), part()
by_hand, by_step = SGD(hand.parameters(), lr=0.1), SGD(other.parameters(), lr=0.1)
for _ in range(8):
    learn(other, by_step, steps=1)
    loss_of(hand).backward()
    with torch.no_grad():
        for p in hand.parameters():
            p.sub_(0.1 * p.grad)
    hand.zero_grad()

net = part()
optimizer = Adam(net.parameters())
for number in range(16):  # counted from 1, clipped right before; some are left over
    loss_of(net, 4).backward()
    if (number + 1) % 4 == 0 or number == 15:
        clip(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
for number in range(16):  # more from time to time; the norm of each; two kinds of steps
    loss_of(net).backward()
    clip(net.parameters(), float("inf"))
    if number % 4 == 0:
        loss_of(net).backward()
    if number < 4:
        clip(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
for _ in range(4):  # each clipped by itself, and taken away by hand
    taken = []
    for _ in range(3):
        loss_of(net).backward()
        clip(net.parameters(), 1.0)
        taken.append([p.grad.clone() for p in net.parameters()])
        for p in net.parameters():
            p.grad.zero_()
    for p, *each in zip(net.parameters(), *taken):
        p.grad = sum(each)
    optimizer.step()
    optimizer.zero_grad()
for number in range(12):
    for task in range(1 + (number > 5)):
        loss_of(net).backward()
    optimizer.step()
    optimizer.zero_grad()
for epoch in range(4):  # what is zeroed in the inner loop is looked at
    for x in data:
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        sum(p.grad.norm() for p in net.parameters())
    optimizer.step()
"""


def test_what_only_looks_like_them_is_left_alone(session: Session) -> None:
    assert session.warned(HEAD + HEALTHY, "--steps", "all") == []
