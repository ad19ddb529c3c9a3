"""Soft actor-critic on a toy grasping task, with a learned temperature."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

OBS, ACT, GAMMA, TAU = 6, 2, 0.95, 0.02


def mlp(inputs, outputs, width=48):
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, outputs),
    )


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = mlp(OBS, 2 * ACT)

    def forward(self, obs):
        mean, log_std = self.body(obs).chunk(2, dim=-1)
        log_std = -4 + 2.5 * (torch.tanh(log_std) + 1)
        normal = torch.distributions.Normal(mean, log_std.exp())
        raw = normal.rsample()
        action = torch.tanh(raw)
        log_pi = normal.log_prob(raw) - 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        return action, log_pi.sum(-1, keepdim=True)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(OBS + ACT, 1), mlp(OBS + ACT, 1)

    def forward(self, obs, action):
        both = torch.cat([obs, action], -1)
        return self.q1(both), self.q2(both)


def replay(n: int):
    obs = torch.randn(n, OBS)
    action = torch.rand(n, ACT) * 2 - 1
    reward = 1 - (action - obs[:, :ACT].tanh()).square().sum(1, keepdim=True)
    following = 0.9 * obs + 0.2 * torch.randn(n, OBS)
    return obs, action, reward, following


class Agent:
    def __init__(self):
        self.actor, self.critic, self.target = Actor(), Critic(), Critic()
        self.target.load_state_dict(self.critic.state_dict())
        self.log_alpha = torch.tensor(math.log(0.2), requires_grad=True)
        self.target_entropy = -float(ACT)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=3e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-3)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=3e-3)

    def update_critic(self, obs, action, reward, following):
        with torch.no_grad():
            next_action, next_log_pi = self.actor(following)
            value = torch.min(*self.target(following, next_action))
            backup = reward + GAMMA * (value - self.log_alpha.exp() * next_log_pi)
        q1, q2 = self.critic(obs, action)
        loss = F.mse_loss(q1, backup) + F.mse_loss(q2, backup)
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()
        return loss.item()

    def update_policy(self, obs):
        action, log_pi = self.actor(obs)
        value = torch.min(*self.critic(obs, action))
        alpha = self.log_alpha.exp()
        actor_loss = (alpha.detach() * log_pi - value).mean()
        alpha_loss = -(alpha * (log_pi + self.target_entropy)).mean()  # <- GS205
        self.actor_optimizer.zero_grad()
        self.alpha_optimizer.zero_grad()
        (actor_loss + alpha_loss).backward()
        self.actor_optimizer.step()
        self.alpha_optimizer.step()
        return actor_loss.item(), -log_pi.mean().item()

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.target.parameters(), self.critic.parameters()):
            slow.lerp_(fast, TAU)


def main():
    torch.manual_seed(2)
    agent, memory = Agent(), replay(1024)
    for step in range(36):
        pick = torch.randint(0, 1024, (64,))
        batch = [part[pick] for part in memory]
        critic_loss = agent.update_critic(*batch)
        actor_loss, entropy = agent.update_policy(batch[0])
        agent.follow()
        if step % 9 == 8:
            print(
                f"step {step + 1}: critic {critic_loss:.3f}  actor {actor_loss:.3f}  "
                f"entropy {entropy:.3f}  alpha {agent.log_alpha.exp().item():.4f}"
            )


if __name__ == "__main__":
    main()
