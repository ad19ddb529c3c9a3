"""Soft actor-critic that worked with torch 1.3 and fails since 1.5."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import Adam


def update_params(optim, network, loss, grad_clip=None, retain_graph=False):
    optim.zero_grad()
    loss.backward(retain_graph=retain_graph)
    if grad_clip is not None:
        torch.nn.utils.clip_grad_norm_(network.parameters(), grad_clip)
    optim.step()  # <- GS401


class Gaussian(nn.Module):
    def __init__(self, obs=3, act=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 16), nn.ReLU(), nn.Linear(16, 2 * act))

    def sample(self, states):
        mean, log_std = self.net(states).chunk(2, dim=-1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        x = normal.rsample()
        action = torch.tanh(x)
        entropy = -(normal.log_prob(x) - (1 - action.pow(2) + 1e-6).log()).sum(1, keepdim=True)
        return action, entropy


class Twin(nn.Module):
    def __init__(self, obs=3, act=2):
        super().__init__()

        def make():
            return nn.Sequential(nn.Linear(obs + act, 16), nn.ReLU(), nn.Linear(16, 1))

        self.Q1, self.Q2 = make(), make()

    def forward(self, states, actions):
        both = torch.cat([states, actions], 1)
        return self.Q1(both), self.Q2(both)


class Agent:
    def __init__(self):
        self.policy, self.critic, self.target = Gaussian(), Twin(), Twin()
        self.target.load_state_dict(self.critic.state_dict())
        self.target.requires_grad_(False)
        self.policy_optim = Adam(self.policy.parameters(), lr=3e-4)
        self.q1_optim = Adam(self.critic.Q1.parameters(), lr=3e-4)
        self.q2_optim = Adam(self.critic.Q2.parameters(), lr=3e-4)

    def critic_loss(self, s, a, r, s2):
        with torch.no_grad():
            a2, h2 = self.policy.sample(s2)
            target = r + 0.99 * (torch.min(*self.target(s2, a2)) + 0.2 * h2)
        q1, q2 = self.critic(s, a)
        return F.mse_loss(q1, target), F.mse_loss(q2, target)

    def policy_loss(self, s):
        a, h = self.policy.sample(s)
        return -(torch.min(*self.critic(s, a)) + 0.2 * h).mean()  # <~ GS401

    def learn(self, batch):
        q1_loss, q2_loss = self.critic_loss(*batch)
        policy_loss = self.policy_loss(batch[0])  # <~ GS401
        update_params(self.q1_optim, self.critic.Q1, q1_loss, 5.0)
        update_params(self.q2_optim, self.critic.Q2, q2_loss, 5.0)
        update_params(self.policy_optim, self.policy, policy_loss, 5.0)


if __name__ == "__main__":
    torch.manual_seed(0)
    agent = Agent()
    for _ in range(2):
        agent.learn(
            (torch.randn(16, 3), torch.rand(16, 2) * 2 - 1, torch.randn(16, 1), torch.randn(16, 3))
        )
