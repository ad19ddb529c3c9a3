"""Influence functions: which training points harm the validation loss the most?"""

import copy

import torch
import torch.nn.functional as F
from torch import nn


def flatten(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def objective(model, x, y, l2=1e-2):
    penalty = sum(p.pow(2).sum() for p in model.parameters())
    return F.cross_entropy(model(x), y) + 0.5 * l2 * penalty


def fit(model, x, y, steps=25):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.8)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = objective(model, x, y)
        loss.backward()
        optimizer.step()
    return loss.item()


class InverseHessian:
    """Solves (H + damping) v = b by conjugate gradients with Hessian-vector products."""

    def __init__(self, model, x, y, damping=1e-2, iterations=20, tolerance=1e-4):
        self.params = list(model.parameters())
        loss = objective(model, x, y)
        grads = torch.autograd.grad(loss, self.params, create_graph=True)
        self.flat_grad = flatten(grads)
        self.damping, self.iterations, self.tolerance = damping, iterations, tolerance

    def product(self, vector):
        hv = torch.autograd.grad(self.flat_grad @ vector, self.params, retain_graph=True)
        return flatten(hv) + self.damping * vector

    def solve(self, b):
        x = torch.zeros_like(b)
        r, p = b.clone(), b.clone()
        rr = r @ r
        for _ in range(self.iterations):
            ap = self.product(p)
            alpha = rr / (p @ ap)
            x += alpha * p
            r -= alpha * ap
            new = r @ r
            if new.sqrt() < self.tolerance * b.norm():
                break
            p = r + (new / rr) * p
            rr = new
        return x, (r.norm() / b.norm()).item()


def influences(model, train, validation):
    params = list(model.parameters())
    validation_loss = F.cross_entropy(model(validation[0]), validation[1])
    b = flatten(torch.autograd.grad(validation_loss, params))
    direction, residual = InverseHessian(model, *train).solve(b)
    scores = []
    for x, y in zip(*train, strict=True):
        loss = F.cross_entropy(model(x.unsqueeze(0)), y.unsqueeze(0))
        grad = flatten(torch.autograd.grad(loss, params))
        scores.append((grad @ direction).item())
    return -torch.tensor(scores), residual


def make_data(n, flipped=0):
    y = torch.randint(0, 3, (n,))
    x = F.one_hot(y, 3).float() @ torch.tensor([[2.0, 0, 0, 1], [0, 2.0, 0, -1], [0, 0, 2.0, 0]])
    x = x + 0.7 * torch.randn(n, 4)
    wrong = torch.zeros(n, dtype=torch.bool)
    wrong[:flipped] = True
    y = torch.where(wrong, (y + 1) % 3, y)
    return (x, y), wrong


def main():
    torch.manual_seed(0)
    train, wrong = make_data(80, flipped=14)
    validation, _ = make_data(120)
    model = nn.Linear(4, 3)
    start = copy.deepcopy(model.state_dict())
    print(f"training loss {fit(model, *train):.3f}")

    scores, residual = influences(model, train, validation)
    harmful = scores.argsort(descending=True)[:14]
    print(
        f"residual {residual:.1e}, wrong labels among 14 most harmful {int(wrong[harmful].sum())}"
    )

    cleaned = nn.Linear(4, 3)
    cleaned.load_state_dict(start)
    kept = torch.ones(len(wrong), dtype=torch.bool)
    kept[harmful] = False
    fit(cleaned, train[0][kept], train[1][kept])
    with torch.no_grad():
        before = F.cross_entropy(model(validation[0]), validation[1]).item()
        after = F.cross_entropy(cleaned(validation[0]), validation[1]).item()
    print(f"validation loss {before:.3f} -> {after:.3f} without them")


if __name__ == "__main__":
    main()
