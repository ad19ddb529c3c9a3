import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


def mlp(din, dout, hidden=32):
    return nn.Sequential(
        nn.Linear(din, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, dout),
    )


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = mlp(obs_dim, 2 * act_dim)

    def forward(self, obs):
        mu, log_std = self.net(obs).chunk(2, dim=-1)
        dist = torch.distributions.Normal(mu, log_std.clamp(-5, 1).exp())
        u = dist.rsample()
        log_prob = dist.log_prob(u) - 2 * (math.log(2) - u - F.softplus(-2 * u))
        return u.tanh(), log_prob.sum(-1), mu.tanh()


class SAC:
    def __init__(self, obs_dim, act_dim, cfg):
        self.cfg = cfg
        self.actor = Actor(obs_dim, act_dim)
        self.critics = nn.ModuleList([mlp(obs_dim + act_dim, 1) for _ in range(2)])
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = torch.tensor(math.log(0.1), requires_grad=True)
        self.target_entropy = -float(act_dim)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=cfg["lr"])
        self.critic_opt = torch.optim.Adam(self.critics.parameters(), lr=cfg["lr"])
        self.alpha_opt = torch.optim.Adam([self.log_alpha], lr=cfg["lr"])

    @staticmethod
    def q(critics, obs, act):
        x = torch.cat([obs, act], dim=-1)
        return torch.stack([c(x).squeeze(-1) for c in critics])

    def update(self, obs, act, rew, nxt):
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            next_act, next_logp, _ = self.actor(nxt)
            next_q = self.q(self.targets, nxt, next_act).min(0).values
            target = rew + self.cfg["gamma"] * (next_q - alpha * next_logp)
        critic_loss = (self.q(self.critics, obs, act) - target).pow(2).mean(1).sum()
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        self.critics.requires_grad_(False)
        new_act, logp, _ = self.actor(obs)
        actor_loss = (alpha * logp - self.q(self.critics, obs, new_act).min(0).values).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        self.critics.requires_grad_(True)

        alpha_loss = -(self.log_alpha * (logp.detach() + self.target_entropy)).mean()
        self.alpha_opt.zero_grad()
        alpha_loss.backward()
        self.alpha_opt.step()

        with torch.no_grad():
            for p, tp in zip(self.critics.parameters(), self.targets.parameters()):
                tp.lerp_(p, self.cfg["tau"])
        return critic_loss.item(), actor_loss.item()
