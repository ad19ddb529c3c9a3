import math

import torch


class SineTask:
    def __init__(self, generator):
        amplitude, phase = torch.rand(2, generator=generator).tolist()
        self.amplitude = 0.5 + 2 * amplitude
        self.phase = math.pi * phase
        self.generator = generator

    def sample(self, n):
        x = 6 * torch.rand(n, 1, generator=self.generator) - 3
        return x, self.amplitude * torch.sin(x + self.phase)


class TaskSampler:
    def __init__(self, seed=0, shots=10, queries=15):
        self.generator = torch.Generator().manual_seed(seed)
        self.shots, self.queries = shots, queries

    def batch(self, n):
        tasks = [SineTask(self.generator) for _ in range(n)]
        return [(task.sample(self.shots), task.sample(self.queries)) for task in tasks]
