"""Deep Q-learning with a target network and a replay buffer."""

import copy
import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)

q = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(q)
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
replay = []


def act(state, epsilon=0.2):
    if random.random() < epsilon:
        return random.randrange(2)
    with torch.no_grad():
        return q(state).argmax().item()


state = torch.randn(3)
for step in range(60):
    action = act(state)
    following = 0.9 * state + 0.3 * torch.randn(3)
    reward = float(following[0] > 0) if action else 0.4
    replay.append((state, action, reward, following))
    state = following
    if step >= 40 and step % 4 == 0:
        s, a, r, n = zip(*random.sample(replay, 16), strict=True)
        with torch.no_grad():
            goal = torch.tensor(r) + 0.9 * target(torch.stack(n)).max(dim=1).values
        value = q(torch.stack(s)).gather(1, torch.tensor(a)[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")
    if step % 20 == 0:
        target.load_state_dict(q.state_dict())
