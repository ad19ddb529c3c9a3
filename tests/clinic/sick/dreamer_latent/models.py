import torch
from torch import nn


class LatentModel(nn.Module):
    def __init__(self, state=12, action=2, hidden=32):
        super().__init__()
        self.cell = nn.GRUCell(state + action, hidden)
        self.prior = nn.Linear(hidden, state)
        self.reward = nn.Sequential(nn.Linear(state + hidden, 32), nn.ELU(), nn.Linear(32, 1))

    def imagine_step(self, state, belief, action):
        belief = self.cell(torch.cat([state, action], dim=1), belief)
        return torch.tanh(self.prior(belief)), belief

    def predict_reward(self, state, belief):
        return self.reward(torch.cat([state, belief], dim=1))


class ValueModel(nn.Module):
    def __init__(self, state=12, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(state + hidden, 40), nn.ELU(), nn.Linear(40, 40), nn.ELU(), nn.Linear(40, 1)
        )

    def forward(self, state, belief):
        return self.net(torch.cat([state, belief], dim=-1))


class ActionModel(nn.Module):
    def __init__(self, state=12, hidden=32, action=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(state + hidden, 40), nn.ELU())
        self.mean = nn.Linear(40, action)
        self.log_std = nn.Parameter(torch.full((action,), -0.7))

    def forward(self, state, belief):
        h = self.body(torch.cat([state, belief], dim=1))
        noise = torch.randn(len(h), self.log_std.numel())
        return torch.tanh(self.mean(h) + self.log_std.exp() * noise)
