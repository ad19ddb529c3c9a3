"""Unsupervised RL pretraining on pixels; the CNN weights equal their initial values afterwards."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--temp", type=float, default=0.5)
    return p.parse_args()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.convnet = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.ReLU()
        )

    def forward(self, obs):
        obs = obs / 255.0 - 0.5
        return self.convnet(obs).flatten(1)


class CICAgent:
    def __init__(self, temp):
        self.temp = temp
        self.encoder = Encoder()
        self.state_net = nn.Sequential(nn.Linear(72, 32), nn.ReLU(), nn.Linear(32, 16))
        self.key_net = nn.Linear(16, 16)
        self.encoder_opt = torch.optim.Adam(self.encoder.parameters(), lr=1e-4)
        self.cic_opt = torch.optim.Adam(
            [*self.state_net.parameters(), *self.key_net.parameters()], lr=1e-4
        )

    def aug_and_encode(self, obs):
        return self.encoder(obs)

    def update_cic(self, obs, skill):
        query, key = self.state_net(obs), self.key_net(skill)
        query, key = F.normalize(query, dim=1), F.normalize(key, dim=1)
        loss = F.cross_entropy(query @ key.T / self.temp, torch.arange(len(obs)))
        self.encoder_opt.zero_grad()
        self.cic_opt.zero_grad()
        loss.backward()
        self.cic_opt.step()
        self.encoder_opt.step()
        return loss.item()

    def update(self, batch):
        obs, skill = batch
        with torch.no_grad():  # <~ GS304
            obs = self.aug_and_encode(obs)  # <- GS304
        return self.update_cic(obs, skill)


if __name__ == "__main__":
    args = parse()
    torch.manual_seed(7)
    agent = CICAgent(args.temp)
    for step in range(args.steps):
        batch = torch.randint(0, 256, (12, 3, 16, 16)).float(), torch.randn(12, 16)
        print({"step": step, "loss": agent.update(batch)})
