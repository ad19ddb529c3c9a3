"""QMIX-like runner: CPU memory climbs linearly with the number of episodes."""

import torch
from torch import nn

torch.manual_seed(0)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(5, 16), nn.Linear(16, 3)

    def forward(self, obs):
        return self.fc2(torch.relu(self.fc1(obs)))


class ReplayBuffer:
    def __init__(self):
        self.episodes = []

    def insert(self, episode):
        self.episodes.append(episode)

    def sample(self, n):
        pick = torch.randint(0, len(self.episodes), (n,))
        return [self.episodes[int(i)] for i in pick]


class EpisodeRunner:
    def __init__(self, mac):
        self.mac = mac

    def run(self, length=5):
        obs, rows = torch.randn(length, 5), []
        for t in range(length):
            q = self.mac(obs[t])
            action = q.softmax(-1).detach()
            rows.append({"obs": obs[t], "actions": action, "reward": obs[t].sum()})
        return {k: torch.stack([row[k] for row in rows]) for k in rows[0]}


mac = Agent()
runner, buffer = EpisodeRunner(mac), ReplayBuffer()
optimizer = torch.optim.RMSprop(mac.parameters(), lr=5e-4)
for episode in range(8):
    buffer.insert(runner.run())
    loss = 0.0
    for batch in buffer.sample(2):
        chosen = batch["actions"].argmax(-1, keepdim=True)
        q = mac(batch["obs"]).gather(1, chosen).squeeze(1)
        loss = loss + (q - batch["reward"]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, loss.item())
