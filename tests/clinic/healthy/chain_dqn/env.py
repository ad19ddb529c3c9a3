import random

import torch


class Chain:
    """Walk left or right on a line; the far end pays off."""

    def __init__(self, length=6, horizon=16):
        self.length = length
        self.horizon = horizon

    def obs(self):
        x = torch.zeros(self.length)
        x[self.pos] = 1.0
        return x

    def reset(self):
        self.pos, self.t = 0, 0
        return self.obs()

    def step(self, action):
        self.pos = min(self.length - 1, self.pos + 1) if action == 1 else max(0, self.pos - 1)
        self.t += 1
        goal = self.pos == self.length - 1
        return self.obs(), 1.0 if goal else 0.0, goal, goal or self.t >= self.horizon


class Replay:
    def __init__(self, capacity, seed):
        self.capacity = capacity
        self.items = []
        self.rng = random.Random(seed)

    def push(self, *item):
        self.items.append(item)
        if len(self.items) > self.capacity:
            self.items.pop(0)

    def sample(self, n):
        obs, act, rew, nxt, done = zip(*self.rng.sample(self.items, n))
        return (
            torch.stack(obs),
            torch.tensor(act),
            torch.tensor(rew),
            torch.stack(nxt),
            torch.tensor(done, dtype=torch.float32),
        )
