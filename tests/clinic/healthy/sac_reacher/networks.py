import math

import torch
import torch.nn.functional as F
from torch import nn


class Actor(nn.Module):
    def __init__(self, obs=4, act=2, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, hidden), nn.ReLU())
        self.mean = nn.Linear(hidden, act)
        self.log_std = nn.Linear(hidden, act)

    def forward(self, obs):
        h = self.body(obs)
        log_std = -5.0 + 3.5 * (torch.tanh(self.log_std(h)) + 1.0)
        dist = torch.distributions.Normal(self.mean(h), log_std.exp())
        raw = dist.rsample()
        squash = 2.0 * (math.log(2.0) - raw - F.softplus(-2.0 * raw))
        return torch.tanh(raw), (dist.log_prob(raw) - squash).sum(1)


class TwinCritic(nn.Module):
    def __init__(self, obs=4, act=2, hidden=48):
        super().__init__()
        self.q1 = self.make(obs + act, hidden)
        self.q2 = self.make(obs + act, hidden)

    @staticmethod
    def make(inputs, hidden):
        return nn.Sequential(
            nn.Linear(inputs, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, obs, act):
        x = torch.cat([obs, act], dim=1)
        return self.q1(x).squeeze(1), self.q2(x).squeeze(1)
