import torch


class VectorPendulum:
    """Several pushable pendulums; the reward is highest upright and at rest."""

    def __init__(self, n_envs, seed, horizon=40):
        self.n_envs = n_envs
        self.horizon = horizon
        self.generator = torch.Generator().manual_seed(seed)
        self.reset()

    def reset(self):
        self.angle = 6.28 * torch.rand(self.n_envs, generator=self.generator) - 3.14
        self.speed = torch.zeros(self.n_envs)
        self.clock = torch.randint(0, self.horizon, (self.n_envs,), generator=self.generator)
        return self.observe()

    def observe(self):
        return torch.stack([self.angle.cos(), self.angle.sin(), self.speed / 4], dim=1)

    def step(self, action):
        push = action.float() - 1.0
        self.speed = (self.speed + 0.1 * (5 * self.angle.sin() + 3 * push)).clamp(-6, 6)
        self.angle = self.angle + 0.1 * self.speed
        reward = self.angle.cos() - 0.05 * self.speed**2
        self.clock = self.clock + 1
        done = self.clock >= self.horizon
        if done.any():
            fresh = 6.28 * torch.rand(self.n_envs, generator=self.generator) - 3.14
            self.angle = torch.where(done, fresh, self.angle)
            self.speed = torch.where(done, torch.zeros_like(self.speed), self.speed)
            self.clock = torch.where(done, torch.zeros_like(self.clock), self.clock)
        return self.observe(), reward, done
