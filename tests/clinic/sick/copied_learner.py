import copy

import torch
from torch import nn


class Regressor(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x))


class MetaTrainer:
    def __init__(self, learner, inner_rate=0.01, meta_rate=1e-3):
        self.learner = learner
        self.inner_rate = inner_rate
        self.optimizer = torch.optim.Adam(learner.parameters(), lr=meta_rate)

    def adapt(self, x, y, steps=1):
        task = copy.deepcopy(self.learner)  # <- GS303
        for _ in range(steps):
            loss = nn.functional.mse_loss(task(x), y)
            gradients = torch.autograd.grad(loss, task.parameters())
            for parameter, gradient in zip(task.parameters(), gradients, strict=True):
                parameter.data -= self.inner_rate * gradient
        return task

    def step(self, tasks):
        self.optimizer.zero_grad()
        total = 0.0
        for amplitude, phase in tasks:
            support, query = torch.rand(10, 1) * 6 - 3, torch.rand(10, 1) * 6 - 3
            task = self.adapt(support, amplitude * torch.sin(support + phase))
            loss = nn.functional.mse_loss(task(query), amplitude * torch.sin(query + phase))
            loss.backward()
            total += loss.item()
        self.optimizer.step()
        return total / len(tasks)


torch.manual_seed(0)
trainer = MetaTrainer(Regressor(20))
for iteration in range(4):
    tasks = [(torch.rand(1) * 4, torch.rand(1) * 3) for _ in range(3)]
    print(iteration, trainer.step(tasks))
