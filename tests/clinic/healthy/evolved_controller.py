"""A recurrent world model learned by gradients, a controller found by evolution inside it."""

import torch
import torch.nn.functional as F
from torch import nn


class WorldModel(nn.Module):
    def __init__(self, obs_dim=2, act_dim=1, hidden=24):
        super().__init__()
        self.cell = nn.LSTMCell(obs_dim + act_dim, hidden)
        self.delta = nn.Linear(hidden, obs_dim)
        self.hidden = hidden

    def initial(self, batch):
        return torch.zeros(batch, self.hidden), torch.zeros(batch, self.hidden)

    def forward(self, obs, action, state):
        state = self.cell(torch.cat([obs, action], dim=-1), state)
        return obs + self.delta(state[0]), state


class Controller(nn.Module):
    def __init__(self, obs_dim=2, act_dim=1):
        super().__init__()
        self.policy = nn.Linear(obs_dim, act_dim)
        self.requires_grad_(False)
        nn.init.zeros_(self.policy.weight)
        nn.init.zeros_(self.policy.bias)

    def forward(self, obs):
        return torch.tanh(self.policy(obs))

    def act_many(self, obs, weights, biases):
        """One set of weights for each row block of a population."""
        return torch.tanh(torch.einsum("pbo,pao->pba", obs, weights) + biases.unsqueeze(1))


def true_dynamics(obs, action):
    position, velocity = obs[..., :1], obs[..., 1:]
    velocity = 0.9 * velocity + 0.3 * action - 0.1 * position
    return torch.cat([position + 0.3 * velocity, velocity], dim=-1)


def train_world_model(model, steps=40, batch=48, window=4, episode=12):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    losses = []
    for step in range(steps):
        if step % (episode // window) == 0:
            obs, state = torch.randn(batch, 2), model.initial(batch)
        state = tuple(part.detach() for part in state)
        loss = 0.0
        for _ in range(window):
            action = 2 * torch.rand(batch, 1) - 1
            predicted, state = model(obs, action, state)
            obs = true_dynamics(obs, action)
            loss = loss + F.mse_loss(predicted, obs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / window)
    return losses


class EvolutionStrategy:
    def __init__(self, controller, population=16, sigma=0.2, lr=0.3):
        self.controller = controller
        self.population, self.sigma, self.lr = population, sigma, lr

    @torch.no_grad()
    def fitness(self, model, weights, biases, starts, horizon=10):
        p = len(weights)
        obs = starts.expand(p, -1, -1)
        state = model.initial(p * starts.shape[0])
        cost = torch.zeros(p)
        for _ in range(horizon):
            action = self.controller.act_many(obs, weights, biases)
            flat, state = model(obs.flatten(0, 1), action.flatten(0, 1), state)
            obs = flat.view_as(obs)
            cost += (obs.pow(2).sum(-1) + 0.01 * action.pow(2).sum(-1)).mean(dim=1)
        return -cost / horizon

    @torch.no_grad()
    def generation(self, model, starts):
        layer = self.controller.policy
        half = self.population // 2
        noise_w = torch.randn(half, *layer.weight.shape)
        noise_b = torch.randn(half, *layer.bias.shape)
        noise_w, noise_b = torch.cat([noise_w, -noise_w]), torch.cat([noise_b, -noise_b])
        weights = layer.weight + self.sigma * noise_w
        biases = layer.bias + self.sigma * noise_b
        fitness = self.fitness(model, weights, biases, starts)
        ranks = fitness.argsort().argsort().float() / (self.population - 1) - 0.5
        layer.weight += self.lr * (ranks.view(-1, 1, 1) * noise_w).mean(dim=0) / self.sigma
        layer.bias += self.lr * (ranks.view(-1, 1) * noise_b).mean(dim=0) / self.sigma
        return fitness.mean().item()


@torch.no_grad()
def true_cost(controller, horizon=10):
    obs, cost = torch.randn(200, 2), 0.0
    for _ in range(horizon):
        obs = true_dynamics(obs, controller(obs))
        cost += obs.pow(2).sum(-1).mean().item() / horizon
    return cost


def main():
    torch.manual_seed(0)
    model, controller = WorldModel(), Controller()
    losses = train_world_model(model)
    print(f"world model {losses[0]:.4f} -> {losses[-1]:.4f}")
    model.eval()
    before = true_cost(controller)
    strategy = EvolutionStrategy(controller)
    for generation in range(15):
        fitness = strategy.generation(model, torch.randn(20, 2))
        if generation % 5 == 0:
            print(f"generation {generation} fitness {fitness:.3f}")
    print(f"cost in the true world {before:.3f} -> {true_cost(controller):.3f}")


if __name__ == "__main__":
    main()
