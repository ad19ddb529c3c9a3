import torch

from agent import SAC

CFG = dict(seed=6, lr=3e-3, gamma=0.9, tau=0.02, envs=16, horizon=10, episodes=4, batch=64)


class PointReacher:
    """Move a point towards a goal on the plane; many copies in parallel."""

    def __init__(self, n, gen):
        self.n, self.gen = n, gen

    def reset(self):
        self.pos = 2 * torch.rand(self.n, 2, generator=self.gen) - 1
        self.goal = 2 * torch.rand(self.n, 2, generator=self.gen) - 1
        return torch.cat([self.pos, self.goal - self.pos], dim=-1)

    def step(self, action):
        self.pos = (self.pos + 0.25 * action).clamp(-1.5, 1.5)
        delta = self.goal - self.pos
        return torch.cat([self.pos, delta], dim=-1), -delta.norm(dim=-1)


@torch.no_grad()
def evaluate(env, agent, horizon):
    obs, total = env.reset(), 0.0
    for _ in range(horizon):
        obs, rew = env.step(agent.actor(obs)[2])
        total += rew.mean().item()
    return total


def main(cfg):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    env, agent, buffer = PointReacher(cfg["envs"], gen), SAC(4, 2, cfg), []
    for episode in range(cfg["episodes"]):
        obs = env.reset()
        for _ in range(cfg["horizon"]):
            with torch.no_grad():
                act = agent.actor(obs)[0]
            nxt, rew = env.step(act)
            buffer.append((obs, act, rew, nxt))
            obs = nxt
        data = [torch.cat(parts) for parts in zip(*buffer)]
        for _ in range(cfg["horizon"]):
            idx = torch.randint(len(data[0]), (cfg["batch"],), generator=gen)
            critic_loss, actor_loss = agent.update(*[d[idx] for d in data])
        if episode % 2 == 0:
            print(
                f"episode {episode:3d}  critic {critic_loss:.4f}  actor {actor_loss:.3f}  "
                f"return {evaluate(env, agent, cfg['horizon']):.2f}"
            )


if __name__ == "__main__":
    main(CFG)
