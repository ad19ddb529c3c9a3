"""TRPO: a natural-gradient step by conjugate gradients, then a line search on the parameters."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class GaussianPolicy(nn.Module):
    def __init__(self, obs_dim=3, act_dim=2, hidden=24):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, act_dim))
        self.log_std = nn.Parameter(torch.full((act_dim,), -0.3))

    def forward(self, obs):
        return Normal(self.mean(obs), self.log_std.exp())


def reward_of(obs, action):
    goal = torch.stack([torch.sin(obs[:, 0]), 0.5 * obs[:, 1] * obs[:, 2]], dim=1)
    return -(action - goal).pow(2).sum(dim=1)


def conjugate_gradient(product, b, iterations=10):
    x = torch.zeros_like(b)
    r, p = b.clone(), b.clone()
    rr = r @ r
    for _ in range(iterations):
        ap = product(p)
        alpha = rr / (p @ ap + 1e-10)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if new < 1e-10:
            break
        p = r + new / rr * p
        rr = new
    return x


class TRPO:
    def __init__(self, policy, value, max_kl=0.03, damping=0.05):
        self.policy, self.value = policy, value
        self.value_optimizer = torch.optim.Adam(value.parameters(), lr=1e-2)
        self.max_kl, self.damping = max_kl, damping

    def fit_value(self, obs, returns, steps=5):
        for _ in range(steps):
            loss = F.mse_loss(self.value(obs).squeeze(1), returns)
            self.value_optimizer.zero_grad()
            loss.backward()
            self.value_optimizer.step()

    def step(self, obs, action, returns):
        params = list(self.policy.parameters())
        with torch.no_grad():
            advantage = returns - self.value(obs).squeeze(1)
            advantage = (advantage - advantage.mean()) / advantage.std()
            old = self.policy(obs)
            old_log_prob = old.log_prob(action).sum(dim=1)

        def surrogate():
            log_prob = self.policy(obs).log_prob(action).sum(dim=1)
            return ((log_prob - old_log_prob).exp() * advantage).mean()

        def mean_kl():
            return kl_divergence(old, self.policy(obs)).sum(dim=1).mean()

        before = surrogate()
        gradient = parameters_to_vector(torch.autograd.grad(before, params)).detach()
        kl_gradient = parameters_to_vector(
            torch.autograd.grad(mean_kl(), params, create_graph=True)
        )

        def fisher_product(vector):
            hv = torch.autograd.grad(kl_gradient @ vector, params, retain_graph=True)
            return parameters_to_vector(hv) + self.damping * vector

        direction = conjugate_gradient(fisher_product, gradient)
        curvature = 0.5 * direction @ fisher_product(direction)
        full_step = direction * (self.max_kl / curvature).sqrt()

        start = parameters_to_vector(params).detach().clone()
        with torch.no_grad():
            for fraction in (1.0, 0.5, 0.25, 0.125):
                vector_to_parameters(start + fraction * full_step, params)
                kl = mean_kl()
                if surrogate() > before and kl <= 1.5 * self.max_kl:
                    return kl.item(), fraction
            vector_to_parameters(start, params)
        return 0.0, 0.0


def main():
    torch.manual_seed(0)
    policy = GaussianPolicy()
    value = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 1))
    agent = TRPO(policy, value)
    for iteration in range(20):
        obs = torch.randn(256, 3)
        with torch.no_grad():
            action = policy(obs).sample()
            returns = reward_of(obs, action)
        agent.fit_value(obs, returns)
        kl, fraction = agent.step(obs, action, returns)
        if iteration % 5 == 0 or iteration == 19:
            print(
                f"iteration {iteration} return {returns.mean().item():.3f} "
                f"kl {kl:.4f} fraction {fraction}"
            )


if __name__ == "__main__":
    main()
