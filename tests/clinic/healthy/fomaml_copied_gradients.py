"""First-order MAML for few-shot classification; fast weights live outside of the module."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


@dataclass
class Config:
    ways: int = 3
    shots: int = 4
    queries: int = 8
    inner_lr: float = 0.3
    inner_steps: int = 3
    tasks: int = 4
    meta_steps: int = 25


class FewShotNet(nn.Module):
    def __init__(self, n_in, ways, hidden=24):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(n_in, hidden), nn.LayerNorm(hidden), nn.ReLU())
        self.head = nn.Linear(hidden, ways)
        self.rotation_head = nn.Linear(hidden, 2)

    def forward(self, x, auxiliary=False):
        z = self.embed(x)
        return self.rotation_head(z) if auxiliary else self.head(z)


class TaskSource:
    def __init__(self, config, n_in=12):
        self.config = config
        self.basis = torch.randn(3, n_in)

    def episode(self):
        cfg = self.config
        centres = torch.randn(cfg.ways, 3) @ self.basis
        labels = torch.arange(cfg.ways).repeat(cfg.shots + cfg.queries)
        x = centres[labels] + 1.5 * torch.randn(len(labels), centres.shape[1])
        cut = cfg.ways * cfg.shots
        return (x[:cut], labels[:cut]), (x[cut:], labels[cut:])


def inner_loop(model, support, config):
    x, y = support
    fast = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    for _ in range(config.inner_steps):
        loss = F.cross_entropy(functional_call(model, fast, (x,)), y)
        grads = torch.autograd.grad(loss, list(fast.values()), allow_unused=True)
        updated = {}
        for (name, weight), grad in zip(fast.items(), grads, strict=True):
            moved = weight if grad is None else weight - config.inner_lr * grad
            updated[name] = moved.detach().requires_grad_()
        fast = updated
    return fast


def meta_batch(model, source, config):
    totals = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    losses, hits = [], []
    for _ in range(config.tasks):
        support, (x, y) = source.episode()
        fast = inner_loop(model, support, config)
        logits = functional_call(model, fast, (x,))
        flipped = torch.randint(0, 2, (len(x),))
        signs = (1 - 2 * flipped).float().unsqueeze(1)
        auxiliary = functional_call(model, fast, (x.abs() * signs, True))
        loss = F.cross_entropy(logits, y) + 0.1 * F.cross_entropy(auxiliary, flipped)
        grads = torch.autograd.grad(loss, list(fast.values()))
        for total, grad in zip(totals.values(), grads, strict=True):
            total += grad / config.tasks
        losses.append(loss.item())
        hits.append((logits.argmax(1) == y).float().mean().item())
    for name, p in model.named_parameters():
        p.grad = totals[name]
    return sum(losses) / len(losses), sum(hits) / len(hits)


def main():
    torch.manual_seed(2)
    config = Config()
    source = TaskSource(config)
    model = FewShotNet(12, config.ways)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(config.meta_steps):
        loss, accuracy = meta_batch(model, source, config)
        optimizer.step()
        if step % 6 == 0:
            print(f"meta step {step:2d} query loss {loss:.3f} accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
