"""Trajectory balance does not train: logZ moves, the policy samples at random."""

import torch
from environment import Base
from torch import nn

torch.manual_seed(0)


class Policy(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.embed = nn.Embedding(n, 16)
        self.mlp = nn.Sequential(nn.LeakyReLU(), nn.Linear(16, 3))

    def forward(self, s):
        return self.mlp(self.embed(s))


env = Base()
policy = Policy(env.length)
logZ = nn.Parameter(torch.ones(8) * 0.1)
opt = torch.optim.Adam(
    [
        {"params": policy.parameters(), "lr": 1e-3},
        {"params": [logZ], "lr": 1e-1},
    ]
)


def trajectory_balance(batch=16, horizon=4):
    states = torch.zeros(batch, dtype=torch.long)
    total = torch.zeros(batch)
    for _ in range(horizon):
        outputs, mask = policy(states), env.mask_invalid(states)
        actions = env.sample(outputs, mask)
        total = total + env.get_logprobs(outputs, actions, mask)
        states = (states + actions - 1).clamp(0, env.length - 1)
    log_reward = -(states - 3.0).abs()
    return (logZ.sum() + total - log_reward).pow(2).mean()


for it in range(3):
    opt.zero_grad()
    loss = trajectory_balance()
    loss.backward()
    opt.step()
    print(it, loss.item(), logZ.sum().item())
