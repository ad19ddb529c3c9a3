"""REINFORCE with a baseline; rewards are plain numbers, logs use .item()."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)

policy = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
baseline = nn.Linear(2, 1)
optimizer = torch.optim.Adam([*policy.parameters(), *baseline.parameters()], lr=5e-3)


def episode(steps=12):
    state, log_probs, values, rewards = torch.randn(2), [], [], []
    for _ in range(steps):
        distribution = Categorical(logits=policy(state))
        action = distribution.sample()
        log_probs.append(distribution.log_prob(action))
        values.append(baseline(state).squeeze(0))
        state = 0.8 * state + 0.2 * (action.item() - 0.5)
        rewards.append(-state.abs().sum().item())
    return torch.stack(log_probs), torch.stack(values), torch.tensor(rewards)


for number in range(4):
    log_probs, values, rewards = episode()
    returns = rewards.flip(0).cumsum(0).flip(0)
    advantage = (returns - values).detach()
    loss = -(log_probs * advantage).mean() + 0.5 * (values - returns).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"episode {number} return {returns[0].item():.3f} loss {loss.item():.4f}")
