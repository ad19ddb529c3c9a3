import torch
from torch import nn


class ActorNetwork(nn.Module):
    def __init__(self, n_obs, n_actions, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(n_obs, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.pi = nn.Linear(hidden, n_actions)

    def forward(self, obs):
        return torch.tanh(self.pi(torch.relu(self.fc2(torch.relu(self.fc1(obs))))))


class CriticNetwork(nn.Module):
    def __init__(self, n_state, n_joint, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(n_state + n_joint, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.q = nn.Linear(hidden, 1)

    def forward(self, state, actions):
        x = torch.cat([state, actions], dim=1)
        return self.q(torch.relu(self.fc2(torch.relu(self.fc1(x)))))
