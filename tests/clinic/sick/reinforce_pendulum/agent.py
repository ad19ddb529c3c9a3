import torch
import torch.nn as nn
from torch.distributions.normal import Normal


class PolicyNetwork(nn.Module):
    def __init__(self, obs_dim, action_dim, hidden1=16, hidden2=32):
        super().__init__()
        self.shared_net = nn.Sequential(
            nn.Linear(obs_dim, hidden1),
            nn.Tanh(),
            nn.Linear(hidden1, hidden2),
            nn.Tanh(),
        )
        self.mean_net = nn.Linear(hidden2, action_dim)
        self.std_net = nn.Linear(hidden2, action_dim)

    def forward(self, obs):
        h = self.shared_net(obs)
        return self.mean_net(h), torch.log(1 + torch.exp(self.std_net(h)))


class Reinforce:
    def __init__(self, obs_dim, action_dim, lr, gamma):
        self.gamma = gamma
        self.net = PolicyNetwork(obs_dim, action_dim)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=lr)
        self.log_probs, self.rewards = [], []

    def sample_action(self, obs):
        mean, std = self.net(torch.from_numpy(obs))
        dist = Normal(mean, std + 1e-6, validate_args=False)
        action = dist.sample()
        self.log_probs.append(dist.log_prob(action).sum())
        return action.item()

    def update(self):
        running, returns = 0.0, []
        for r in self.rewards[::-1]:
            running = r + self.gamma * running
            returns.insert(0, running)
        deltas = torch.tensor(returns)
        log_probs = torch.stack(self.log_probs)
        log_prob_mean = log_probs.mean()  # <- GS530
        loss = -torch.sum(log_prob_mean * deltas)  # <~ GS530
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.log_probs, self.rewards = [], []
        return loss.item()
