"""Deep Q-learning of a cart that has to be kept near the middle of its track."""

import random
from collections import deque, namedtuple

import torch
import torch.nn.functional as F
from torch import nn, optim

Transition = namedtuple("Transition", "state action next_state reward done")

BATCH_SIZE = 32
GAMMA = 0.95
EPS_START, EPS_END, EPS_DECAY = 0.9, 0.1, 100
TARGET_UPDATE = 10


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, count):
        return Transition(*zip(*random.sample(self.memory, count)))

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, inputs=2, actions=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, actions)

    def forward(self, x):
        return self.head(self.body(x))


class Track:
    def reset(self):
        self.x, self.v = random.uniform(-1, 1), 0.0
        return self.state()

    def state(self):
        return torch.tensor([self.x, self.v])

    def step(self, action):
        self.v += 0.1 * (2 * action - 1)
        self.x += self.v
        done = abs(self.x) > 4
        reward = -100.0 if done else 10.0 - 3 * abs(self.x)
        return self.state(), reward, done


def select_action(policy, state, steps_done):
    share = max(0.0, 1 - steps_done / EPS_DECAY)
    if random.random() < EPS_END + (EPS_START - EPS_END) * share:
        return random.randrange(2)
    with torch.no_grad():
        return policy(state).argmax().item()


def optimize_model(policy, target, memory, optimizer):
    if len(memory) < BATCH_SIZE:
        return None
    batch = memory.sample(BATCH_SIZE)
    states, next_states = torch.stack(batch.state), torch.stack(batch.next_state)
    actions = torch.tensor(batch.action).unsqueeze(1)
    rewards, done = torch.tensor(batch.reward), torch.tensor(batch.done)
    predicted = policy(states).gather(1, actions).squeeze(1)
    with torch.no_grad():
        expected = rewards + GAMMA * target(next_states).max(1).values * ~done
    loss = F.mse_loss(predicted, expected)
    optimizer.zero_grad()
    loss.backward()
    for param in policy.parameters():
        param.grad.data.clamp(-1, 1)  # <- GS000
    optimizer.step()
    return loss.item()


def main():
    random.seed(0)
    torch.manual_seed(0)
    policy, target = DQN(), DQN()
    target.load_state_dict(policy.state_dict())
    optimizer = optim.RMSprop(policy.parameters(), lr=1e-3)
    memory, track = ReplayMemory(500), Track()
    state, loss = track.reset(), None
    for step in range(BATCH_SIZE + 36):
        action = select_action(policy, state, step)
        next_state, reward, done = track.step(action)
        memory.push(state, action, next_state, reward, done)
        state = track.reset() if done else next_state
        loss = optimize_model(policy, target, memory, optimizer)
        if step % TARGET_UPDATE == 0:
            target.load_state_dict(policy.state_dict())
            print(f"step {step} loss {loss}")


if __name__ == "__main__":
    main()
