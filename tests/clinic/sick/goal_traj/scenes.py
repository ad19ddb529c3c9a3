import torch
from torch import nn

from decoder import MLP


class SceneEncoder(nn.Module):
    def __init__(self, hidden, history):
        super().__init__()
        self.agent = nn.Sequential(MLP(history * 2, hidden), MLP(hidden, hidden))
        self.lane = MLP(4, hidden)

    def forward(self, past, lanes):
        lane_states = self.lane(lanes)
        return self.agent(past.flatten(1)) + lane_states.mean(1), lane_states


def sample_scenes(n, history, horizon, num_goals, gen):
    heading = torch.rand(n, generator=gen) * 6.28
    speed = 0.5 + torch.rand(n, generator=gen)
    turn = 0.8 * (torch.rand(n, generator=gen) - 0.5)
    t = torch.arange(-history + 1, horizon + 1).float()
    angle = heading[:, None] + turn[:, None] * t / 6
    vel = speed[:, None, None] * torch.stack([angle.cos(), angle.sin()], -1)
    pos = vel.cumsum(1) * 0.5
    pos = pos - pos[:, history - 1 : history]
    past, future = pos[:, :history], pos[:, history:]
    goals = future[:, -1:] + 1.5 * torch.randn(n, num_goals, 2, generator=gen)
    label = torch.randint(num_goals, (n,), generator=gen)
    goals[torch.arange(n), label] = future[:, -1]
    lanes = torch.cat([goals[:, :4], goals[:, :4] - future[:, -1:]], dim=-1)
    return past, lanes, goals, label, future
