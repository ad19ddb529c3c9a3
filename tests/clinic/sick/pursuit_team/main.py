import torch
from maddpg import Team

N_AGENTS, N_OBS, N_ACTIONS = 2, 4, 2


class Pursuit:
    """Agents see their own place and the place of the prey, and are paid for coming near."""

    def reset(self, n):
        self.place = torch.rand(n, N_AGENTS, 2) * 2 - 1
        self.prey = torch.rand(n, 1, 2) * 2 - 1
        return self.observe()

    def observe(self):
        return torch.cat([self.place, self.prey.expand_as(self.place)], dim=-1)

    def step(self, actions):
        self.place = (self.place + 0.2 * actions).clamp(-1, 1)
        self.prey = (self.prey + 0.05 * torch.randn_like(self.prey)).clamp(-1, 1)
        return self.observe(), -(self.place - self.prey).norm(dim=-1)


def main():
    torch.manual_seed(2)
    env, team, replay = Pursuit(), Team(N_AGENTS, N_OBS, N_ACTIONS), []
    obs = env.reset(16)
    for step in range(24):
        actions = team.act(obs)
        next_obs, rewards = env.step(actions)
        replay.append((obs, actions, rewards, next_obs))
        obs = next_obs
        if len(replay) >= 4:
            picks = torch.randperm(len(replay))[:4].tolist()
            batch = [torch.cat([replay[i][part] for i in picks]) for part in range(4)]
            losses = team.learn(batch)
            if step % 6 == 0:
                text = " ".join(f"critic {c:.3f} actor {a:.3f}" for c, a in losses)
                print(f"step {step:2d} reward {rewards.mean().item():.3f} {text}")


if __name__ == "__main__":
    main()
