"""Double dueling Q-learning on a small grid rover."""

import torch
from agent import Agent


class Rover:
    MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))

    def __init__(self, size=5):
        self.size = size

    def observe(self):
        return torch.tensor([*self.pos, *self.goal], dtype=torch.float32) / self.size

    def reset(self):
        self.pos = torch.randint(0, self.size, (2,)).tolist()
        self.goal = torch.randint(0, self.size, (2,)).tolist()
        return self.observe()

    def step(self, action):
        dx, dy = self.MOVES[action]
        self.pos[0] = min(max(self.pos[0] + dx, 0), self.size - 1)
        self.pos[1] = min(max(self.pos[1] + dy, 0), self.size - 1)
        done = self.pos == self.goal
        return self.observe(), 1.0 if done else -0.05, done


def main(total_steps=110, warmup=70):
    torch.manual_seed(2)
    env, agent = Rover(), Agent(obs_dim=4, n_actions=4)
    obs, losses = env.reset(), []
    for step in range(total_steps):
        epsilon = max(0.1, 1.0 - step / 80)
        action = agent.online.act(obs, epsilon)
        nxt, reward, done = env.step(action)
        agent.remember(obs, action, reward, nxt, done)
        obs = env.reset() if done else nxt
        if step >= warmup:
            losses.append(agent.learn())
    print(f"updates {len(losses)} first {losses[0]:.4f} last {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
