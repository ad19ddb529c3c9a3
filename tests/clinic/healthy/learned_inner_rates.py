"""Few-shot sine fitting where every weight also learns the rate of its own inner step."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class Regressor(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x)


class MetaLearner(nn.Module):
    def __init__(self, model, rate: float, steps: int):
        super().__init__()
        self.model, self.steps = model, steps
        self.rates = nn.ParameterDict(
            {
                name.replace(".", "_"): nn.Parameter(torch.full_like(p, rate))
                for name, p in model.named_parameters()
            }
        )

    def adapt(self, x, y, keep_graph: bool = True):
        weights = dict(self.model.named_parameters())
        for _ in range(self.steps):
            loss = F.mse_loss(functional_call(self.model, weights, (x,)), y)
            grads = torch.autograd.grad(loss, tuple(weights.values()), create_graph=keep_graph)
            weights = {
                name: w - self.rates[name.replace(".", "_")] * g
                for (name, w), g in zip(weights.items(), grads)
            }
        return weights

    def query_loss(self, task, keep_graph: bool = True):
        (sx, sy), (qx, qy) = task
        weights = self.adapt(sx, sy, keep_graph)
        return F.mse_loss(functional_call(self.model, weights, (qx,)), qy)


def sine_task(shots=8, queries=16):
    height, phase = 0.5 + 2 * torch.rand(1), 3.1 * torch.rand(1)
    x = torch.rand(shots + queries, 1) * 6 - 3
    y = height * torch.sin(x + phase)
    return (x[:shots], y[:shots]), (x[shots:], y[shots:])


def main():
    torch.manual_seed(23)
    learner = MetaLearner(Regressor(), rate=0.02, steps=2)
    optimizer = torch.optim.Adam(learner.parameters(), lr=5e-3)
    held_out = [sine_task() for _ in range(16)]
    for step in range(20):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(4):
            loss = learner.query_loss(sine_task()) / 4
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 10.0)
        optimizer.step()
        if step % 5 == 4:
            error = sum(learner.query_loss(t, False).item() for t in held_out) / len(held_out)
            print(f"step {step + 1}: query loss {total:.4f}  held out {error:.4f}")


if __name__ == "__main__":
    main()
