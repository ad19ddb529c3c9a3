import torch
from torch import nn


class Actor(nn.Module):
    def __init__(self, n_state, n_action, hidden=64):
        super().__init__()
        self.scale = nn.LayerNorm(n_state)
        self.fc1 = nn.Linear(n_state, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, n_action)

    def forward(self, state):
        h = torch.relu(self.fc1(self.scale(state)))
        h = torch.relu(self.fc2(h))
        return torch.tanh(self.out(h))


class Critic(nn.Module):
    def __init__(self, n_state, n_action, hidden=64):
        super().__init__()
        self.scale = nn.LayerNorm(n_state)
        self.fc_s = nn.Linear(n_state, hidden)
        self.fc_a = nn.Linear(n_action, hidden)
        self.q = nn.Linear(hidden, 1)

    def forward(self, state, action):
        h = torch.relu(self.fc_s(self.scale(state)) + self.fc_a(action))
        return self.q(h)
