"""A3C worker: the critic learns, the actor does not move."""

import torch
from torch import nn, optim
from torch.distributions import Categorical

torch.manual_seed(1)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 2), nn.Softmax(dim=-1))

    def act(self, state):
        dist = Categorical(self.net(state))
        action = dist.sample()
        return action, dist.log_prob(action)


class Worker:
    gamma = 0.95

    def __init__(self):
        self.actor = Actor()
        self.critic = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 1))
        params = list(self.actor.parameters()) + list(self.critic.parameters())
        self.opt = optim.RMSprop(params, lr=1e-3)
        self.memory = []

    def rollout(self, n=8):
        self.memory.clear()
        for _ in range(n):
            state = torch.randn(4)
            action, log_prob = self.actor.act(state)
            self.memory.append((state, log_prob, float(action) - 0.5))

    def learn(self):
        states = torch.stack([t[0] for t in self.memory])
        log_probs = torch.tensor(  # <- GS303
            [t[1] for t in self.memory], dtype=torch.float
        )
        rewards = torch.tensor([t[2] for t in self.memory])
        values = self.critic(states).squeeze(-1)
        advantage = rewards - values
        loss = -(log_probs * advantage.detach()).mean() + advantage.pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


worker = Worker()
for episode in range(3):
    worker.rollout()
    print("episode", episode, "loss", worker.learn())
