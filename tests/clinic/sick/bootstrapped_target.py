"""The target of a value network: rewards are a row and the bootstrapped values a column; the
broadcast happens under no_grad, before the loss."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
value = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
target_value = copy.deepcopy(value)
optimizer = torch.optim.Adam(value.parameters(), lr=1e-3)


def td_target(rewards, following, done, discount=0.99):
    with torch.no_grad():
        following_value = target_value(following)
        following_value[done] = 0.0
        return rewards + discount * following_value  # <- GS503


for _ in range(4):
    states, following = torch.randn(20, 4), torch.randn(20, 4)
    rewards, done = torch.randn(20), torch.rand(20) < 0.1
    error = value(states) - td_target(rewards, following, done)
    loss = F.huber_loss(error, torch.zeros_like(error))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target_value.parameters(), value.parameters(), strict=True):
            slow.lerp_(fast, 0.05)
