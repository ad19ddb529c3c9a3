"""PPO: rollout under no_grad, old log probs kept, several epochs of minibatches."""

import torch
from torch import nn
from torch.distributions import Normal


class ActorCritic(nn.Module):
    def __init__(self, obs=3, act=2):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs, 16), nn.Tanh(), nn.Linear(16, act))
        self.critic = nn.Sequential(nn.Linear(obs, 16), nn.Tanh(), nn.Linear(16, 1))
        self.log_std = nn.Parameter(torch.zeros(act))

    def evaluate(self, obs, action=None):
        dist = Normal(self.actor(obs), self.log_std.exp())
        action = dist.sample() if action is None else action
        return (
            action,
            dist.log_prob(action).sum(-1),
            dist.entropy().sum(-1),
            self.critic(obs).squeeze(-1),
        )


class RolloutBuffer(list):
    def add(self, **kw):
        self.append({k: v.detach() for k, v in kw.items()})

    def stack(self):
        return {k: torch.stack([d[k] for d in self]) for k in self[0]}


def gae(rewards, values, gamma=0.99, lam=0.95):
    advantages, last = torch.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards) - 1)):
        delta = rewards[t] + gamma * values[t + 1] - values[t]
        advantages[t] = last = delta + gamma * lam * last
    return advantages


torch.manual_seed(0)
net = ActorCritic()
opt = torch.optim.Adam(net.parameters(), lr=3e-4, eps=1e-5)
for update in range(2):
    buffer, obs = RolloutBuffer(), torch.randn(4, 3)
    for _ in range(8):
        with torch.no_grad():
            action, logp, _, value = net.evaluate(obs)
        reward = -(action**2).sum(-1)
        buffer.add(obs=obs, action=action, logp=logp, value=value, reward=reward)
        obs = 0.8 * obs + 0.2 * torch.randn(4, 3)
    roll = buffer.stack()
    adv = gae(roll["reward"], roll["value"])
    returns = adv + roll["value"]
    flat = {k: v.flatten(0, 1) for k, v in roll.items()} | {
        "adv": adv.flatten(),
        "ret": returns.flatten(),
    }
    kls = []
    for _epoch in range(2):
        for idx in torch.randperm(32).split(16):
            mb = {k: v[idx] for k, v in flat.items()}
            _, logp, entropy, value = net.evaluate(mb["obs"], mb["action"])
            ratio = (logp - mb["logp"]).exp()
            a = (mb["adv"] - mb["adv"].mean()) / (mb["adv"].std() + 1e-8)
            pg = -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
            loss = pg + 0.5 * (value - mb["ret"]).pow(2).mean() - 0.01 * entropy.mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            opt.step()
            with torch.no_grad():
                kls.append((mb["logp"] - logp).mean().item())
    print(update, loss.item(), max(kls))
