"""A network that writes the weights of another one; the other's own weights are not trained."""

import torch
import torch.nn.functional as F
from torch import nn


class Target(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first = nn.Linear(1, width)
        self.second = nn.Linear(width, 1)

    def forward(self, x):
        return self.second(torch.sin(self.first(x)))


class Hyper(nn.Module):
    def __init__(self, context, target):
        super().__init__()
        self.shapes = {name: p.shape for name, p in target.named_parameters()}
        total = sum(shape.numel() for shape in self.shapes.values())
        self.body = nn.Sequential(nn.Linear(context, 32), nn.Tanh(), nn.Linear(32, total))
        start = torch.cat([p.detach().flatten() for p in target.parameters()])
        nn.init.normal_(self.body[-1].weight, std=0.01)
        self.body[-1].bias.data.copy_(start)

    def forward(self, context):
        flat = self.body(context)
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = flat.split(sizes, dim=-1)
        return {
            name: part.view(len(context), *shape)
            for part, (name, shape) in zip(parts, self.shapes.items())
        }


def waves(count, generator):
    amplitude = 0.5 + torch.rand(count, 1, generator=generator)
    pitch = 1 + 2 * torch.rand(count, 1, generator=generator)
    x = 2 * torch.rand(count, 20, 1, generator=generator) - 1
    y = amplitude.unsqueeze(1) * torch.sin(pitch.unsqueeze(1) * x)
    return torch.cat([amplitude, pitch], dim=1), x, y


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    target = Target()
    hyper = Hyper(2, target)

    def predict(weights, x):
        return torch.func.functional_call(target, weights, (x,))

    predict_all = torch.vmap(predict)
    optimizer = torch.optim.Adam(hyper.parameters(), lr=1e-2)
    for step in range(30):
        context, x, y = waves(16, generator)
        loss = F.mse_loss(predict_all(hyper(context), x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 6 == 5:
            print(f"step {step + 1} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
