import math

import numpy as np


class InvertedPendulum:
    """Cart with a pole; the action is a force on the cart, +1 per step while the pole is up."""

    def __init__(self, max_steps=120, dt=0.04, seed=0):
        self.max_steps, self.dt = max_steps, dt
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.state = self.rng.uniform(-0.03, 0.03, size=4)
        self.t = 0
        return self.state.astype(np.float32)

    def step(self, action):
        x, theta, x_dot, theta_dot = self.state
        force = 10.0 * float(np.clip(action, -3.0, 3.0))
        total, pole_ml, length = 1.1, 0.05, 0.5
        temp = (force + pole_ml * theta_dot**2 * math.sin(theta)) / total
        theta_acc = (9.8 * math.sin(theta) - math.cos(theta) * temp) / (
            length * (4 / 3 - 0.1 * math.cos(theta) ** 2 / total)
        )
        x_acc = temp - pole_ml * theta_acc * math.cos(theta) / total
        x_dot += self.dt * x_acc
        theta_dot += self.dt * theta_acc
        x += self.dt * x_dot
        theta += self.dt * theta_dot
        self.state = np.array([x, theta, x_dot, theta_dot])
        self.t += 1
        terminated = abs(theta) > 0.2
        truncated = self.t >= self.max_steps
        return self.state.astype(np.float32), 1.0, terminated, truncated
