"""Reptile: learn an initialisation from which a sine wave is fitted in a few steps."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


def build_regressor(hidden=40):
    return nn.Sequential(
        nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1)
    )


class SineTask:
    def __init__(self, generator):
        self.amplitude = 0.5 + 1.5 * torch.rand(1, generator=generator)
        self.phase = 0.8 * torch.rand(1, generator=generator)

    def sample(self, n, generator):
        x = torch.rand(n, 1, generator=generator) * 2 * math.pi - math.pi
        return x, self.amplitude * torch.sin(x + self.phase)


def adapt(model, task, steps, lr, generator):
    learner = copy.deepcopy(model)
    for _ in range(steps):
        x, y = task.sample(20, generator)
        loss = F.mse_loss(learner(x), y)
        learner.zero_grad()
        loss.backward()
        for p in learner.parameters():
            p.data -= lr * p.grad
    return learner


def meta_step(model, meta_optimizer, task, config, generator):
    learner = adapt(model, task, config["inner_steps"], config["inner_lr"], generator)
    meta_optimizer.zero_grad()
    with torch.no_grad():
        for slow, fast in zip(model.parameters(), learner.parameters(), strict=True):
            slow.grad = slow - fast
    meta_optimizer.step()


def evaluate(model, config, generator):
    before, after = [], []
    for _ in range(5):
        task = SineTask(generator)
        learner = adapt(model, task, config["inner_steps"], config["inner_lr"], generator)
        x, y = task.sample(50, generator)
        with torch.no_grad():
            before.append(F.mse_loss(model(x), y).item())
            after.append(F.mse_loss(learner(x), y).item())
    return sum(before) / len(before), sum(after) / len(after)


def main():
    torch.manual_seed(1)
    config = {"inner_steps": 6, "inner_lr": 0.05, "meta_lr": 1.0, "iterations": 40}
    model = build_regressor()
    meta_optimizer = torch.optim.SGD(model.parameters(), lr=config["meta_lr"])
    scheduler = torch.optim.lr_scheduler.LinearLR(
        meta_optimizer, start_factor=1.0, end_factor=0.2, total_iters=config["iterations"]
    )
    generator = torch.Generator().manual_seed(5)
    for iteration in range(config["iterations"]):
        if iteration % 20 == 0:
            before, after = evaluate(model, config, torch.Generator().manual_seed(99))
            print(f"iteration {iteration}: before adapting {before:.3f}, after {after:.3f}")
        meta_step(model, meta_optimizer, SineTask(generator), config, generator)
        scheduler.step()
    before, after = evaluate(model, config, torch.Generator().manual_seed(99))
    print(f"end: before adapting {before:.3f}, after {after:.3f}")


if __name__ == "__main__":
    main()
