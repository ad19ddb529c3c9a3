"""DDPG on a point mass that has to be pushed to the origin."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU())
        self.out = nn.Linear(hidden, act_dim)
        nn.init.uniform_(self.out.weight, -3e-3, 3e-3)
        nn.init.zeros_(self.out.bias)

    def forward(self, obs):
        return torch.tanh(self.out(self.body(obs)))


class Critic(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(obs_dim + act_dim, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, obs, action):
        return self.net(torch.cat([obs, action], dim=-1)).squeeze(-1)


class ReplayBuffer:
    def __init__(self, capacity, obs_dim, act_dim):
        self.obs = torch.zeros(capacity, obs_dim)
        self.action = torch.zeros(capacity, act_dim)
        self.reward = torch.zeros(capacity)
        self.next_obs = torch.zeros(capacity, obs_dim)
        self.capacity, self.size, self.ptr = capacity, 0, 0

    def add(self, obs, action, reward, next_obs):
        for row in zip(obs, action, reward, next_obs, strict=True):
            self.obs[self.ptr], self.action[self.ptr] = row[0], row[1]
            self.reward[self.ptr], self.next_obs[self.ptr] = row[2], row[3]
            self.ptr = (self.ptr + 1) % self.capacity
            self.size = min(self.size + 1, self.capacity)

    def sample(self, n):
        idx = torch.randint(0, self.size, (n,))
        return self.obs[idx], self.action[idx], self.reward[idx], self.next_obs[idx]


def env_step(obs, action):
    position, velocity = obs[:, :1], obs[:, 1:]
    velocity = 0.6 * velocity + 0.4 * action
    position = (position + velocity).clamp(-2.0, 2.0)
    reward = -(position.pow(2) + 0.01 * action.pow(2)).squeeze(1)
    return torch.cat([position, velocity], dim=1), reward


def rollout_return(actor, n=32, horizon=8):
    start = torch.linspace(-1.5, 1.5, n).unsqueeze(1)
    obs, total = torch.cat([start, torch.zeros_like(start)], dim=1), 0.0
    with torch.no_grad():
        for _ in range(horizon):
            obs, reward = env_step(obs, actor(obs))
            total += reward.mean().item()
    return total


class DDPG:
    def __init__(self, obs_dim=2, act_dim=1, gamma=0.7, tau=0.1):
        self.actor, self.critic = Actor(obs_dim, act_dim), Critic(obs_dim, act_dim)
        self.actor_target = copy.deepcopy(self.actor)
        self.critic_target = copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-2)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-2)
        self.gamma, self.tau = gamma, tau

    def update(self, batch):
        obs, action, reward, next_obs = batch
        with torch.no_grad():
            next_q = self.critic_target(next_obs, self.actor_target(next_obs))
            target = reward + self.gamma * next_q
        critic_loss = F.mse_loss(self.critic(obs, action), target)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        actor_loss = -self.critic(obs, self.actor(obs)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

        for net, target_net in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
            for p, p_target in zip(net.parameters(), target_net.parameters(), strict=True):
                p_target.data.mul_(1 - self.tau).add_(p.data, alpha=self.tau)
        return critic_loss.item(), actor_loss.item()


def main():
    torch.manual_seed(0)
    agent, buffer = DDPG(), ReplayBuffer(2000, 2, 1)
    print(f"return before {rollout_return(agent.actor):.2f}")
    obs = torch.randn(256, 2)
    random_action = torch.rand(256, 1) * 2 - 1
    buffer.add(obs, random_action, *reversed(env_step(obs, random_action)))
    obs = torch.randn(16, 2)
    for step in range(40):
        with torch.no_grad():
            action = (agent.actor(obs) + 0.4 * torch.randn(16, 1)).clamp(-1, 1)
        next_obs, reward = env_step(obs, action)
        buffer.add(obs, action, reward, next_obs)
        obs = torch.randn(16, 2) if step % 4 == 3 else next_obs
        critic_loss, actor_loss = agent.update(buffer.sample(128))
        if step % 10 == 9:
            print(f"step {step} critic {critic_loss:.3f} actor {actor_loss:.3f}")
    print(f"return after {rollout_return(agent.actor):.2f}")


if __name__ == "__main__":
    main()
