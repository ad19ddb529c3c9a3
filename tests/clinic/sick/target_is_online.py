import torch
from torch import nn


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, state):
        return self.layers(state)


class Agent:
    def __init__(self, tau):
        self.tau = tau
        self.online = QNetwork()
        self.target = self.online  # <- GS315
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1e-3)

    def learn(self, state, action, reward, following):
        with torch.no_grad():
            wanted = reward + 0.99 * self.target(following).max(dim=1).values
        value = self.online(state).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.follow()

    def follow(self):
        pairs = zip(self.online.parameters(), self.target.parameters(), strict=True)
        for online, target in pairs:
            target.data.copy_(self.tau * online.data + (1 - self.tau) * target.data)


torch.manual_seed(0)
agent = Agent(0.005)
for _ in range(5):
    agent.learn(torch.randn(8, 4), torch.randint(0, 2, (8,)), torch.rand(8), torch.randn(8, 4))
