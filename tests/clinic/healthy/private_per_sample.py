"""DP-SGD: per-sample gradients by torch.func, each clipped, noise added, written into .grad."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad_and_value, vmap


@dataclass
class Privacy:
    max_norm: float = 1.0
    noise_multiplier: float = 0.6
    sampling_rate: float = 0.2
    steps: int = 30


class Net(nn.Module):
    def __init__(self, hidden=16, classes=3):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 5, stride=2)
        self.norm = nn.GroupNorm(2, 8)
        self.fc = nn.Linear(8 * 8, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        x = F.elu(self.norm(self.conv(x.unsqueeze(1))))
        return self.out(F.elu(self.fc(x.flatten(1))))


class DPStep:
    def __init__(self, model, optimizer, privacy, expected):
        self.model, self.optimizer, self.privacy = model, optimizer, privacy
        self.expected = expected
        self.per_sample = vmap(grad_and_value(self.sample_loss), in_dims=(None, None, 0, 0))

    def sample_loss(self, params, buffers, x, y):
        logits = functional_call(self.model, (params, buffers), (x.unsqueeze(0),))
        return F.cross_entropy(logits, y.unsqueeze(0))

    def __call__(self, x, y):
        params = {name: p.detach() for name, p in self.model.named_parameters()}
        buffers = dict(self.model.named_buffers())
        grads, losses = self.per_sample(params, buffers, x, y)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
        factors = (self.privacy.max_norm / (norms + 1e-6)).clamp(max=1.0)
        sigma = self.privacy.noise_multiplier * self.privacy.max_norm
        self.optimizer.zero_grad()
        for name, p in self.model.named_parameters():
            clipped = torch.einsum("n,n...->...", factors, grads[name])
            noisy = clipped + sigma * torch.randn_like(p)
            p.grad = noisy / self.expected
        self.optimizer.step()
        return losses.mean().item(), (norms > self.privacy.max_norm).float().mean().item()


def poisson_sample(n, rate):
    return torch.nonzero(torch.rand(n) < rate).flatten()


def make_data(n=300):
    label = torch.randint(0, 3, (n,))
    grid = torch.linspace(0, 1, 20)
    freq = 2.0 ** label.float().unsqueeze(1)
    return torch.sin(2 * math.pi * freq * grid + torch.rand(n, 1)) + 0.7 * torch.randn(n, 20), label


def main():
    torch.manual_seed(0)
    privacy = Privacy()
    x, y = make_data()
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step = DPStep(model, optimizer, privacy, expected=privacy.sampling_rate * len(x))
    for i in range(privacy.steps):
        ids = poisson_sample(len(x), privacy.sampling_rate)
        loss, clipped = step(x[ids], y[ids])
        if i % 7 == 0:
            print(f"step {i} samples {len(ids)} loss {loss:.3f} clipped {clipped:.2f}")
    with torch.no_grad():
        accuracy = (model(x).argmax(dim=1) == y).float().mean().item()
    print(f"accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
