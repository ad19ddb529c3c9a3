"""An actor's loss of a column and a row: the difference of all pairs, whose mean is that of the
pairs that belong together."""

import torch
from torch import nn


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, state):
        middle, spread = self.body(state).chunk(2, dim=-1)
        policy = torch.distributions.Normal(middle, spread.clamp(-4, 1).exp())
        raw = policy.rsample()
        action = torch.tanh(raw)
        density = policy.log_prob(raw) - torch.log1p(1e-6 - action.square())
        return action, density.sum(1, keepdim=True)


def value_of(critics, state, action):
    given = torch.cat([state, action], dim=1)
    return torch.minimum(*(critic(given) for critic in critics)).view(-1)


def main():
    torch.manual_seed(0)
    actor = Actor()
    critics = nn.ModuleList(nn.Linear(5, 1) for _ in range(2))
    moves = torch.optim.Adam(actor.parameters(), lr=3e-3)
    judges = torch.optim.Adam(critics.parameters(), lr=3e-3)
    for step in range(12):
        state = torch.randn(64, 3)
        with torch.no_grad():
            action, _ = actor(state)
        reward = -(action - state[:, :2]).square().sum(1)
        given = torch.cat([state, action], dim=1)
        judged = sum((critic(given).view(-1) - reward).square().mean() for critic in critics)
        judges.zero_grad()
        judged.backward()
        judges.step()

        action, density = actor(state)
        loss = (0.2 * density - value_of(critics, state, action)).mean()
        moves.zero_grad()
        loss.backward()
        moves.step()
        if step % 4 == 0:
            print(step, round(judged.item(), 3), round(loss.item(), 3))


if __name__ == "__main__":
    main()
