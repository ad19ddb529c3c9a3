"""DQN: replay buffer of detached states, target network copied now and then, double-Q targets."""

import random
from collections import deque, namedtuple

import torch
from torch import nn

Transition = namedtuple("Transition", "state action reward next_state done")


class Dueling(nn.Module):
    def __init__(self, obs=4, actions=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 24), nn.ReLU())
        self.value, self.advantage = nn.Linear(24, 1), nn.Linear(24, actions)

    def forward(self, x):
        h = self.body(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(-1, keepdim=True)


class Agent:
    def __init__(self):
        self.q, self.target = Dueling(), Dueling()
        self.target.load_state_dict(self.q.state_dict())
        self.target.eval()
        self.memory = deque(maxlen=200)
        self.opt = torch.optim.Adam(self.q.parameters(), lr=1e-3)
        self.steps = 0

    def act(self, state, eps=0.2):
        if random.random() < eps:
            return random.randrange(3)
        return self.q(state.unsqueeze(0)).argmax(1).item()

    def learn(self, batch=16):
        if len(self.memory) < batch:
            return None
        s, a, r, s2, d = (
            torch.stack(z) for z in zip(*random.sample(self.memory, batch), strict=False)
        )
        q = self.q(s).gather(1, a.view(-1, 1)).squeeze(1)
        best = self.q(s2).argmax(1, keepdim=True)
        nxt = self.target(s2).gather(1, best).squeeze(1).detach()
        loss = nn.functional.smooth_l1_loss(q, r + 0.99 * nxt * (1 - d))
        self.opt.zero_grad()
        loss.backward()
        for p in self.q.parameters():
            p.grad.data.clamp_(-1, 1)
        self.opt.step()
        self.steps += 1
        if self.steps % 5 == 0:
            for t, p in zip(self.target.parameters(), self.q.parameters(), strict=False):
                t.data.copy_(0.5 * t.data + 0.5 * p.data)
        return loss.item()


random.seed(0)
torch.manual_seed(0)
agent, losses = Agent(), []
for _episode in range(4):
    state = torch.randn(4)
    for _ in range(12):
        action = agent.act(state)
        new = state * 0.9 + 0.1 * torch.randn(4)
        agent.memory.append(
            Transition(
                state, torch.tensor(action), torch.tensor(float(new[0])), new, torch.tensor(0.0)
            )
        )
        state = new
        if (loss := agent.learn()) is not None:
            losses.append(loss)
print(sum(losses) / len(losses))
