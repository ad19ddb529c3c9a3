"""The actor is to climb the critic, and the action between them is drawn without history."""

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 4))
critic = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
for parameter in critic.parameters():
    parameter.requires_grad_(False)
bias = nn.Parameter(torch.zeros(1))
optimizer = torch.optim.Adam([*actor.parameters(), bias], lr=3e-4)


def act(observation):
    mean, log_std = actor(observation).chunk(2, dim=-1)
    policy = Normal(mean, log_std.clamp(-5, 2).exp())
    return torch.tanh(policy.sample())  # <- GS303


for _ in range(4):
    observation = torch.randn(24, 5)
    value = critic(torch.cat([observation, act(observation)], dim=-1))
    loss = -(value + bias).mean() + bias.square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
