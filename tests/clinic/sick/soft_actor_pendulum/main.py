import torch
from sac_policy import SACPolicy

CONFIG = {
    "lr": 3e-3,
    "gamma": 0.97,
    "tau": 0.02,
    "initial_alpha": 1.0,
    "device": "cpu",
    "batch_size": 64,
    "steps": 24,
}


class Swing:
    def reset(self, n):
        self.angle = torch.rand(n, 1) * 6.28 - 3.14
        self.speed = torch.zeros(n, 1)
        return self.observe()

    def observe(self):
        return torch.cat([torch.cos(self.angle), torch.sin(self.angle), self.speed], dim=1)

    def step(self, action):
        cost = self.angle.pow(2) + 0.1 * self.speed.pow(2) + 0.001 * action.pow(2)
        self.speed = (self.speed + 0.5 * torch.sin(self.angle) + 0.3 * action).clamp(-8, 8)
        self.angle = torch.remainder(self.angle + 0.05 * self.speed + 3.14, 6.28) - 3.14
        return self.observe(), -cost


def main():
    torch.manual_seed(6)
    env, policy = Swing(), SACPolicy(3, 1, CONFIG)
    obs, replay = env.reset(32), []
    for step in range(CONFIG["steps"]):
        with torch.no_grad():
            action, _ = policy.model.sample(obs)
        next_obs, reward = env.step(action)
        replay.append((obs, action, reward, next_obs))
        obs = next_obs
        stored = [torch.cat(part) for part in zip(*replay, strict=False)]
        rows = torch.randint(len(stored[0]), (CONFIG["batch_size"],))
        info = policy.learn([part[rows] for part in stored])
        if step % 6 == 0:
            print(f"step {step:2d} " + " ".join(f"{k} {v:.4f}" for k, v in info.items()))


if __name__ == "__main__":
    main()
