"""Soft actor-critic on a point that has to reach a goal."""

import copy
import math

import torch
import torch.nn.functional as F
from networks import Actor, TwinCritic


class Reacher:
    def reset(self):
        self.pos, self.goal = torch.zeros(2), torch.rand(2) * 2 - 1
        self.left = 12
        return torch.cat([self.pos, self.goal])

    def step(self, action):
        self.pos = (self.pos + 0.2 * action).clamp(-1.5, 1.5)
        self.left -= 1
        reward = -(self.pos - self.goal).norm().item()
        return torch.cat([self.pos, self.goal]), reward, self.left == 0


class SoftActorCritic:
    def __init__(self, gamma=0.95, tau=0.02, lr=2e-3):
        self.actor, self.critic = Actor(), TwinCritic()
        self.target = copy.deepcopy(self.critic)
        self.target.requires_grad_(False)
        self.log_alpha = torch.tensor(math.log(0.2), requires_grad=True)
        self.opt_actor = torch.optim.Adam(self.actor.parameters(), lr=lr)
        self.opt_critic = torch.optim.Adam(self.critic.parameters(), lr=lr)
        self.opt_alpha = torch.optim.Adam([self.log_alpha], lr=lr)
        self.gamma, self.tau = gamma, tau

    def update(self, obs, act, rew, nxt, delay):
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            nxt_act, nxt_logp = self.actor(nxt)
            soft = torch.minimum(*self.target(nxt, nxt_act)) - alpha * nxt_logp
            goal = rew + self.gamma * soft
        q1, q2 = self.critic(obs, act)
        critic_loss = F.mse_loss(q1, goal) + F.mse_loss(q2, goal)
        self.opt_critic.zero_grad()
        critic_loss.backward()
        self.opt_critic.step()

        if delay:
            for p in self.critic.parameters():
                p.requires_grad = False
            new_act, logp = self.actor(obs)
            actor_loss = (alpha * logp - torch.minimum(*self.critic(obs, new_act))).mean()
            self.opt_actor.zero_grad()
            actor_loss.backward()
            self.opt_actor.step()
            for p in self.critic.parameters():
                p.requires_grad = True
            alpha_loss = -(self.log_alpha * (logp.detach() - 2.0)).mean()
            self.opt_alpha.zero_grad()
            alpha_loss.backward()
            self.opt_alpha.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.critic.parameters(), strict=True):
                slow.lerp_(fast, self.tau)
        return critic_loss.item()


def main(total=120, warmup=84):
    torch.manual_seed(5)
    env, agent, memory = Reacher(), SoftActorCritic(), []
    obs, losses = env.reset(), []
    for step in range(total):
        if step < warmup:
            action = torch.rand(2) * 2 - 1
        else:
            with torch.no_grad():
                action = agent.actor(obs.unsqueeze(0))[0].squeeze(0)
        nxt, reward, done = env.step(action)
        memory.append((obs, action, torch.tensor(reward), nxt))
        obs = env.reset() if done else nxt
        if step >= warmup:
            pick = torch.randint(0, len(memory), (48,)).tolist()
            batch = [torch.stack(column) for column in zip(*(memory[i] for i in pick), strict=True)]
            losses.append(agent.update(*batch, delay=step % 2 == 0))
    print(f"critic loss {losses[0]:.3f} -> {losses[-1]:.3f} alpha {agent.log_alpha.exp():.3f}")


if __name__ == "__main__":
    main()
