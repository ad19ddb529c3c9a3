import copy
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

from env import Chain, Replay

CFG = dict(episodes=20, gamma=0.9, batch_size=32, lr=3e-3, tau=0.05, learn_start=64, seed=0)


class DuelingQ(nn.Module):
    def __init__(self, obs_dim, actions, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU())
        self.value = nn.Linear(hidden, 1)
        self.adv = nn.Linear(hidden, actions)

    def forward(self, x):
        h = self.body(x)
        adv = self.adv(h)
        return self.value(h) + adv - adv.mean(-1, keepdim=True)


@torch.no_grad()
def soft_update(target, online, tau):
    for p_t, p in zip(target.parameters(), online.parameters()):
        p_t.lerp_(p, tau)


def td_loss(online, target, batch, gamma):
    obs, act, rew, nxt, done = batch
    q = online(obs).gather(1, act.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best = online(nxt).argmax(1, keepdim=True)
        backup = rew + gamma * (1 - done) * target(nxt).gather(1, best).squeeze(1)
    return F.smooth_l1_loss(q, backup)


def main():
    torch.manual_seed(CFG["seed"])
    rng = random.Random(CFG["seed"])
    env, replay = Chain(), Replay(2000, CFG["seed"])
    online = DuelingQ(env.length, 2)
    target = copy.deepcopy(online).requires_grad_(False).eval()
    optimizer = torch.optim.Adam(online.parameters(), lr=CFG["lr"])
    step, recent = 0, []
    for episode in range(CFG["episodes"]):
        obs, done = env.reset(), False
        eps = max(0.1, 1.0 - episode / 25)
        while not done:
            with torch.no_grad():
                greedy = online(obs).argmax().item()
            action = rng.randrange(2) if rng.random() < eps else greedy
            nxt, reward, terminal, done = env.step(action)
            replay.push(obs, action, reward, nxt, terminal)
            obs = nxt
            if len(replay.items) < CFG["learn_start"]:
                continue
            loss = td_loss(online, target, replay.sample(CFG["batch_size"]), CFG["gamma"])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_value_(online.parameters(), 1.0)
            optimizer.step()
            soft_update(target, online, CFG["tau"])
            step += 1
            recent.append(loss.item())
        if episode % 5 == 4 and recent:
            print(f"episode {episode + 1} steps {step} td loss {sum(recent) / len(recent):.5f}")
            recent = []


if __name__ == "__main__":
    main()
