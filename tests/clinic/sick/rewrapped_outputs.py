"""Per-agent networks, outputs collected in a list. All agents keep their first weights."""

import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore", category=UserWarning)
torch.manual_seed(0)

agents = nn.ModuleList([nn.Linear(3, 1) for _ in range(4)])
mixer = nn.Linear(4, 1)
optimizer = torch.optim.Adam([*agents.parameters(), *mixer.parameters()], lr=1e-2)


def joint_value(observation):
    values = [agent(observation).squeeze() for agent in agents]
    values = torch.tensor(  # <- GS303
        [v * 1.0 for v in values],
        requires_grad=True,
    )
    return mixer(values)


observations = torch.randn(6, 3)
returns = torch.randn(6, 1)
for epoch in range(3):
    epoch_loss = 0.0
    for observation, wanted in zip(observations, returns, strict=True):
        loss = (joint_value(observation) - wanted).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    print(f"epoch {epoch} loss {epoch_loss / 6:.4f}")
