"""Healed. The masked terms are set to 0 before they are multiplied."""

import torch
from torch import nn


class CategoricalMasked:
    def __init__(self, logits, mask):
        self.logits = logits.masked_fill(~mask, float("-inf")).log_softmax(-1)
        self.probs = self.logits.exp()

    def log_prob(self, a):
        return self.logits.gather(-1, a.unsqueeze(-1)).squeeze(-1)

    def entropy(self):
        p_log_p = self.logits.masked_fill(self.probs == 0, 0.0) * self.probs
        return -p_log_p.sum(-1)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, 5), nn.Linear(64, 1)

    def forward(self, obs, mask):
        h = self.body(obs)
        return CategoricalMasked(self.pi(h), mask), self.v(h).squeeze(-1)


torch.manual_seed(0)
ac = ActorCritic()
opt = torch.optim.Adam(ac.parameters(), lr=7e-4)
for _update in range(3):
    obs = torch.randn(20, 8)
    mask = torch.rand(20, 5) > 0.3
    mask[:, 0] = True
    actions = mask.float().multinomial(1).squeeze(1)
    returns = torch.randn(20)
    dist, value = ac(obs, mask)
    adv = (returns - value).detach()
    loss = (
        -(dist.log_prob(actions) * adv).mean()
        + 0.5 * (returns - value).pow(2).mean()
        - 0.01 * dist.entropy().mean()
    )
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(ac.parameters(), 0.5)
    opt.step()
