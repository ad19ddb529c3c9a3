from types import SimpleNamespace

import torch

from sac_agent import SacAgent

ARGS = SimpleNamespace(
    p_lr=3e-3, q_lr=3e-3, gamma=0.95, polyak=0.05, batch=48, init=64, steps=96, seed=0
)


class Arm:
    """A two-link arm that should reach the target named in the observation."""

    def reset(self):
        self.joints = torch.rand(2) * 3 - 1.5
        self.goal = torch.rand(2) * 2 - 1
        self.clock = 0
        return self.observe()

    def observe(self):
        return torch.cat([self.joints, self.goal])

    def step(self, action):
        self.joints = self.joints + 0.3 * action
        self.clock += 1
        reward = -(self.joints - self.goal).norm()
        return self.observe(), reward.item(), self.clock >= 12


class Buffer:
    def __init__(self):
        self.rows = []

    def add(self, *row):
        self.rows.append(row)

    def sample(self, count):
        pick = torch.randint(0, len(self.rows), (count,)).tolist()
        obs, act, reward, next_obs, done = zip(*(self.rows[i] for i in pick))
        column = lambda values: torch.tensor(values, dtype=torch.float32).unsqueeze(1)  # noqa: E731
        return (
            torch.stack(obs),
            torch.stack(act),
            column(reward),
            torch.stack(next_obs),
            column(done),
        )


def main():
    torch.manual_seed(ARGS.seed)
    env, buffer = Arm(), Buffer()
    agent = SacAgent(4, 2, ARGS)
    obs, rewards = env.reset(), []
    for step in range(ARGS.steps):
        if step < ARGS.init:
            action = torch.rand(2) * 2 - 1
        else:
            with torch.no_grad():
                action, _ = agent.actor.sample(obs)
        next_obs, reward, done = env.step(action)
        buffer.add(obs, action, reward, next_obs, float(done))
        rewards.append(reward)
        obs = env.reset() if done else next_obs
        if step >= ARGS.init:
            q_loss, actor_loss = agent.update(*buffer.sample(ARGS.batch))
            if step % 8 == 0:
                mean = sum(rewards[-8:]) / 8
                print(f"{step} reward {mean:.3f} q {q_loss:.3f} actor {actor_loss:.3f}")


if __name__ == "__main__":
    main()
