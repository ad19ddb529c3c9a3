import torch
from torch import nn
from torch.distributions import Normal


class Actor(nn.Module):
    def __init__(self, obs, act, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.mean = nn.Linear(hidden, act)
        self.log_std = nn.Linear(hidden, act)

    def forward(self, obs):
        h = torch.relu(self.body(obs))
        return self.mean(h), self.log_std(h).clamp(-5, 2)

    def sample(self, obs):
        mean, log_std = self(obs)
        dist = Normal(mean, log_std.exp())
        raw = dist.rsample()
        action = torch.tanh(raw)
        log_prob = dist.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(-1, keepdim=True)


class Critic(nn.Module):
    def __init__(self, obs, act, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(obs + act, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, obs, act):
        return self.net(torch.cat([obs, act], dim=-1))
