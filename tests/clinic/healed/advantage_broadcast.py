"""Healed. The advantage is a vector like the log-probabilities."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)

actor = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)


def update(states, actions, returns):
    value = critic(states)
    advantage = (returns - value).detach()
    advantage = advantage.squeeze(1)
    log_prob = Categorical(logits=actor(states)).log_prob(actions)
    policy_loss = -(log_prob * advantage).mean()
    loss = policy_loss + nn.functional.mse_loss(value, returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for episode in range(3):
    states = torch.randn(32, 4)
    actions = torch.randint(0, 3, (32,))
    returns = torch.randn(32, 1)
    print(f"episode {episode} loss {update(states, actions, returns):.4f}")
