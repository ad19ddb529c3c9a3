import math

import torch
from torch import nn

LOG_STD_MIN, LOG_STD_MAX = -5, 2


def mlp(n_in, n_out, hidden=32):
    return nn.Sequential(
        nn.Linear(n_in, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, n_out),
    )


class SACModel(nn.Module):
    def __init__(self, n_obs, n_act, initial_alpha=1.0, target_entropy=None):
        super().__init__()
        self.actor = mlp(n_obs, 2 * n_act)
        self.q1 = mlp(n_obs + n_act, 1)
        self.q2 = mlp(n_obs + n_act, 1)
        self.log_alpha = torch.tensor([math.log(initial_alpha)], requires_grad=True)
        self.target_entropy = -float(n_act) if target_entropy is None else target_entropy

    def sample(self, obs):
        mean, log_std = self.actor(obs).chunk(2, dim=-1)
        std = log_std.clamp(LOG_STD_MIN, LOG_STD_MAX).exp()
        normal = torch.distributions.Normal(mean, std)
        raw = normal.rsample()
        action = torch.tanh(raw)
        log_prob = normal.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(-1, keepdim=True)

    def q_values(self, obs, action):
        x = torch.cat([obs, action], dim=-1)
        return self.q1(x), self.q2(x)
