"""Short round trips through random cities, found by a pointer policy with a critic as baseline."""

import torch
from torch import nn

CONFIG = {"cities": 8, "dim": 24, "batch": 32, "steps": 11, "actor_lr": 2e-3, "critic_lr": 2e-3}


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embed = nn.Linear(2, dim)
        self.attention = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.norm = nn.LayerNorm(dim)

    def forward(self, cities):
        x = self.embed(cities)
        return self.norm(x + self.attention(x, x, x, need_weights=False)[0])


class Actor(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.encoder = Encoder(dim)
        self.query = nn.Linear(2 * dim, dim)
        self.start = nn.Parameter(torch.randn(dim) * 0.1)

    def forward(self, cities):
        memory = self.encoder(cities)
        batch, n, dim = memory.shape
        last, visited = self.start.expand(batch, dim), torch.zeros(batch, n, dtype=torch.bool)
        tour, log_prob = [], 0.0
        for _ in range(n):
            query = torch.tanh(self.query(torch.cat([last, memory.mean(1)], dim=1)))
            scores = (memory @ query.unsqueeze(-1)).squeeze(-1) / dim**0.5
            policy = torch.distributions.Categorical(
                logits=scores.masked_fill(visited, float("-inf"))
            )
            city = policy.sample()
            log_prob = log_prob + policy.log_prob(city)
            visited = visited.scatter(1, city.unsqueeze(1), True)
            last = memory[torch.arange(batch), city]
            tour.append(city)
        return torch.stack(tour, dim=1), log_prob


class Critic(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.encoder = Encoder(dim)
        self.value = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, cities):
        return self.value(self.encoder(cities).mean(1)).squeeze(-1)


def tour_length(cities, tour):
    path = cities.gather(1, tour.unsqueeze(-1).expand(-1, -1, 2))
    return (path - path.roll(-1, dims=1)).norm(dim=-1).sum(dim=1)


def train(actor, critic, cfg):
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=cfg["actor_lr"])
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=cfg["critic_lr"])
    for step in range(cfg["steps"]):
        cities = torch.rand(cfg["batch"], cfg["cities"], 2)
        tour, log_prob = actor(cities)
        length = tour_length(cities, tour)
        predicted = critic(cities)

        advantage = length - predicted  # <- GS533
        actor_loss = (advantage * log_prob).mean()  # <~ GS533
        critic_loss = nn.functional.mse_loss(predicted, length)

        actor_optimizer.zero_grad()
        critic_optimizer.zero_grad()
        actor_loss.backward(retain_graph=True)
        critic_loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
        actor_optimizer.step()
        critic_optimizer.step()
        if step % 5 == 0:
            mean = length.mean().item()
            print(f"step {step:2d} length {mean:.3f} predicted {predicted.mean().item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(10)
    train(Actor(CONFIG["dim"]), Critic(CONFIG["dim"]), CONFIG)
