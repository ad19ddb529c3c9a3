"""PPO: the advantages are a column, as the critic gives them, and the ratios are a row."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.policy, self.value = nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, observations):
        hidden = self.body(observations)
        return Categorical(logits=self.policy(hidden)), self.value(hidden)


def ppo_loss(model, batch, clip=0.2):
    policy, values = model(batch["observations"])
    advantages = (batch["returns"] - values).detach()
    ratios = (policy.log_prob(batch["actions"]) - batch["log_probs"]).exp()
    plain = ratios * advantages  # <- GS503
    clipped = ratios.clamp(1 - clip, 1 + clip) * advantages  # <~ GS503
    actor = -torch.min(plain, clipped).mean()
    return actor + 0.5 * (batch["returns"] - values).square().mean()


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
observations = torch.randn(48, 4)
with torch.no_grad():
    old, _ = model(observations)
    actions = old.sample()
batch = {
    "observations": observations,
    "actions": actions,
    "log_probs": old.log_prob(actions),
    "returns": torch.randn(48, 1),
}
for _ in range(4):
    loss = ppo_loss(model, batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
