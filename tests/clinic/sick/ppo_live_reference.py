"""A policy is improved by the ratio to what it was when the batch began."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
critic = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=3e-3)


def improve(states, actions, returns):
    """Three small steps on one batch."""
    for _ in range(3):
        advantages = returns - critic(states).squeeze(-1).detach()
        now = Categorical(logits=policy(states)).log_prob(actions)
        before = Categorical(logits=policy(states)).log_prob(actions)
        ratio = (now - before).exp()  # <- GS205
        clipped = ratio.clamp(0.8, 1.2)
        gain = torch.minimum(ratio * advantages, clipped * advantages).mean()
        miss = (critic(states).squeeze(-1) - returns).square().mean()
        optimizer.zero_grad()
        (miss - gain).backward()
        optimizer.step()
    return gain.item()


for epoch in range(4):
    states = torch.randn(64, 6)
    with torch.no_grad():
        actions = Categorical(logits=policy(states)).sample()
    returns = (actions == states[:, :3].argmax(-1)).float()
    print(epoch, round(improve(states, actions, returns), 4))
