import torch
from torch import nn


class DuelingNet(nn.Module):
    def __init__(self, obs_dim, n_actions, hidden=48):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU())
        self.advantage = nn.Sequential(
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, n_actions)
        )
        self.value = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, obs):
        h = self.features(obs)
        adv = self.advantage(h)
        val = self.value(h)
        return val + adv - adv.mean()  # <- GS531

    @torch.no_grad()
    def act(self, obs, epsilon):
        if torch.rand(()).item() < epsilon:
            return int(torch.randint(0, 4, ()).item())
        return int(self(obs.unsqueeze(0)).argmax(1).item())
