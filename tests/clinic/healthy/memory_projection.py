"""Three tasks one after the other; a step may not undo what the memory of old tasks asks for."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class TaskNet(nn.Module):
    def __init__(self, inputs=10, width=32, classes=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(F.relu(self.body(x)))


class Memory:
    def __init__(self, per_task: int):
        self.per_task, self.x, self.y = per_task, [], []

    def add(self, x, y):
        self.x.append(x[: self.per_task])
        self.y.append(y[: self.per_task])

    def sample(self, n: int):
        x, y = torch.cat(self.x), torch.cat(self.y)
        pick = torch.randint(0, len(x), (n,))
        return x[pick], y[pick]


def flat_gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def put_back(model, flat):
    start = 0
    for p in model.parameters():
        p.grad.copy_(flat[start : start + p.numel()].view_as(p))
        start += p.numel()


def make_task(index: int):
    turn = torch.linalg.qr(torch.randn(10, 10))[0]
    x = torch.randn(256, 10)
    hidden = (x @ turn)[:, :2]
    return x, (hidden[:, 0] > 0).long() * 2 + (hidden[:, 1] > 0.3 * index).long()


def accuracy(model, task) -> float:
    with torch.no_grad():
        return (model(task[0]).argmax(1) == task[1]).float().mean().item()


def main():
    torch.manual_seed(3)
    tasks = [make_task(i) for i in range(3)]
    model, memory = TaskNet(), Memory(24)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    turned = 0
    for index, (x, y) in enumerate(tasks):
        for _ in range(12):
            if index:
                mx, my = memory.sample(32)
                optimizer.zero_grad()
                F.cross_entropy(model(mx), my).backward()
                reference = flat_gradient(model)
            pick = torch.randint(0, len(x), (32,))
            optimizer.zero_grad()
            F.cross_entropy(model(x[pick]), y[pick]).backward()
            if index:
                gradient = flat_gradient(model)
                overlap = torch.dot(gradient, reference)
                if overlap < 0:
                    put_back(model, gradient - overlap / reference.square().sum() * reference)
                    turned += 1
            optimizer.step()
        memory.add(x, y)
        scores = "  ".join(f"{accuracy(model, t):.3f}" for t in tasks[: index + 1])
        print(f"after task {index}: {scores}  ({turned} steps turned)")


if __name__ == "__main__":
    main()
