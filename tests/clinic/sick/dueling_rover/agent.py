import copy
import random
from collections import deque

import torch
import torch.nn.functional as F
from network import DuelingNet


class Agent:
    def __init__(self, obs_dim, n_actions, gamma=0.95, lr=1e-3, sync_every=10, seed=0):
        self.online = DuelingNet(obs_dim, n_actions)
        self.target = copy.deepcopy(self.online).eval()
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.gamma = gamma
        self.sync_every = sync_every
        self.updates = 0
        self.memory = deque(maxlen=500)
        self.rng = random.Random(seed)

    def remember(self, *transition):
        self.memory.append(transition)

    def learn(self, batch_size=32):
        batch = self.rng.sample(self.memory, batch_size)
        obs, act, rew, nxt, done = map(list, zip(*batch, strict=True))
        obs, nxt = torch.stack(obs), torch.stack(nxt)
        act = torch.tensor(act).unsqueeze(1)
        rew, done = torch.tensor(rew), torch.tensor(done, dtype=torch.float32)

        q = self.online(obs).gather(1, act).squeeze(1)
        with torch.no_grad():
            best = self.online(nxt).argmax(1, keepdim=True)
            future = self.target(nxt).gather(1, best).squeeze(1)
            goal = rew + self.gamma * (1.0 - done) * future
        loss = F.smooth_l1_loss(q, goal)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.optimizer.step()

        self.updates += 1
        if self.updates % self.sync_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()
