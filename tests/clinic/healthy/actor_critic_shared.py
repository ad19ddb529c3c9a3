"""An actor and a critic on one body: actions are drawn without history and scored by their
log-probability; advantages are detached and normalised."""

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
body, policy, value = nn.Linear(4, 16), nn.Linear(16, 4), nn.Linear(16, 1)
learned = [*body.parameters(), *policy.parameters(), *value.parameters()]
optimizer = torch.optim.Adam(learned, lr=1e-2)
log_alpha = torch.zeros((), requires_grad=True)
temperature = torch.optim.Adam([log_alpha], lr=1e-2)

for _ in range(5):
    hidden = torch.tanh(body(torch.randn(32, 4)))
    mean, log_std = policy(hidden).chunk(2, dim=-1)
    actions = Normal(mean, log_std.clamp(-2, 1).exp())
    action = actions.sample()
    log_prob = actions.log_prob(action).sum(-1)
    reward = -action.square().sum(-1)
    expected = value(hidden).squeeze(-1)
    advantage = reward - expected.detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    loss = -(log_prob * advantage).mean() + 0.5 * (reward - expected).square().mean()
    loss = loss - 0.01 * actions.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    alpha_loss = -(log_alpha * (log_prob + 1).detach()).mean()
    temperature.zero_grad()
    alpha_loss.backward()
    temperature.step()
