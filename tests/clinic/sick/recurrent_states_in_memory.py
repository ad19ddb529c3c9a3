"""Recurrent PPO: the LSTM states in my experience buffer; second minibatch cannot go backward."""

import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self, obs=4, hid=8, act=3):
        super().__init__()
        self.cell = nn.LSTMCell(obs, hid)
        self.pi, self.v = nn.Linear(hid, act), nn.Linear(hid, 1)

    def forward(self, obs, state):
        state = self.cell(obs, state)  # <~ GS000
        return Categorical(logits=self.pi(state[0])), self.v(state[0]).squeeze(-1), state


class Experience:
    def __init__(self):
        self.obs, self.actions, self.rewards, self.h, self.c, self.logp = [], [], [], [], [], []

    def store(self, obs, state, action, reward, logp):
        self.obs.append(obs)
        self.h.append(state[0])
        self.c.append(state[1])
        self.actions.append(action)
        self.rewards.append(reward)
        self.logp.append(logp.detach())

    def minibatches(self, size):
        for i in range(0, len(self.obs), size):
            yield [torch.cat(part[i : i + size]) for part in vars(self).values()]


def rollout(policy, steps=6):
    memory, obs = Experience(), torch.randn(4, 4)
    state = (torch.zeros(4, 8), torch.zeros(4, 8))
    for _ in range(steps):
        before = state
        dist, _, state = policy(obs, state)
        action = dist.sample()
        memory.store(obs, before, action, action.float(), dist.log_prob(action))
        obs = torch.randn(4, 4)
    return memory


torch.manual_seed(0)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
memory = rollout(policy)
for _epoch in range(2):
    for obs, actions, rewards, h, c, old in memory.minibatches(3):  # <- GS000
        dist, value, _ = policy(obs, (h, c))
        ratio = (dist.log_prob(actions) - old).exp()
        loss = -(ratio * (rewards - value.detach())).mean() + (rewards - value).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
