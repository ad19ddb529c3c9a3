"""An actor and a critic keep a pole upright: each episode ends with one step of both."""

import argparse
import math

import torch
from torch import nn
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--episodes", type=int, default=300)
episodes = parser.parse_args().episodes


class CartPole:
    """A cart on a rail with a pole on it, in steps of 20 ms."""

    def reset(self):
        self.state = [0.1 * (number - 0.5) for number in torch.rand(4).tolist()]
        return torch.tensor(self.state)

    def step(self, action):
        x, speed, angle, turning = self.state
        force = 10.0 if action else -10.0
        pushed = (force + 0.05 * turning**2 * math.sin(angle)) / 1.1
        bent = 9.8 * math.sin(angle) - math.cos(angle) * pushed
        bend = bent / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        push = pushed - 0.05 * bend * math.cos(angle) / 1.1
        self.state = [
            x + 0.02 * speed,
            speed + 0.02 * push,
            angle + 0.02 * turning,
            turning + 0.02 * bend,
        ]
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return torch.tensor(self.state), 1.0, fell


class ActorCritic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Linear(4, hidden)
        self.actor = nn.Linear(hidden, 2)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, state):
        features = torch.relu(self.body(state))
        return Categorical(logits=self.actor(features)), self.critic(features).squeeze(-1)


torch.manual_seed(0)
model, pole = ActorCritic(), CartPole()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for episode in range(1, episodes + 1):
    state, fell, log_probs, values, rewards = pole.reset(), False, [], [], []
    while not fell and len(rewards) < 50:
        distribution, value = model(state)
        action = distribution.sample()
        state, reward, fell = pole.step(action.item())
        log_probs.append(distribution.log_prob(action))
        values.append(value)
        rewards.append(reward)

    returns, later = [], 0.0
    for reward in reversed(rewards):
        later = reward + 0.99 * later
        returns.insert(0, later)
    returns = torch.tensor(returns)
    values = torch.stack(values)
    advantages = returns - values.detach()
    actor_loss = -(torch.stack(log_probs) * advantages).sum()
    critic_loss = nn.functional.smooth_l1_loss(values, returns, reduction="sum")
    optimizer.zero_grad()
    (actor_loss + critic_loss).backward()
    optimizer.step()
    if episode % 50 == 0:
        print(f"episode {episode}  steps {len(rewards)}")
