import torch.nn as nn
import torch.nn.functional as F


class DRQN(nn.Module):
    def __init__(self, input_dim, n_actions, hidden):
        super().__init__()
        self.fc1 = nn.Linear(input_dim, hidden)
        self.rnn = nn.GRUCell(hidden, hidden)
        self.fc2 = nn.Linear(hidden, n_actions)

    def forward(self, obs, h):
        h = self.rnn(F.relu(self.fc1(obs)), h)
        return self.fc2(h), h


class QMixNet(nn.Module):
    """Monotonic mixing of the agents' values, conditioned on the global state."""

    def __init__(self, n_agents, state_dim, embed=16):
        super().__init__()
        self.n_agents, self.embed = n_agents, embed
        self.hyper_w1 = nn.Linear(state_dim, n_agents * embed)
        self.hyper_b1 = nn.Linear(state_dim, embed)
        self.hyper_w2 = nn.Linear(state_dim, embed)
        self.hyper_b2 = nn.Sequential(nn.Linear(state_dim, embed), nn.ReLU(), nn.Linear(embed, 1))

    def forward(self, qs, state):
        w1 = self.hyper_w1(state).abs().view(*state.shape[:-1], self.n_agents, self.embed)
        hidden = F.elu((qs.unsqueeze(-2) @ w1).squeeze(-2) + self.hyper_b1(state))
        return (hidden * self.hyper_w2(state).abs()).sum(-1) + self.hyper_b2(state).squeeze(-1)
