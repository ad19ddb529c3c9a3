"""Steps that are taken back where they do not help, and made again with half the rate, along the
same gradient; a balance of two tasks whose own gradient is put in place of what backward left."""

import torch
from torch import nn
from torch.nn import functional as F


def loss_of(model, balance, x, y, label):
    out = model(x)
    tasks = torch.stack([F.mse_loss(out[:, 0], y), F.cross_entropy(out[:, 1:], label)])
    return (balance * tasks).sum(), tasks


def step_back_and_forth(model, optimizer, evaluate, before, most=6):
    """Halve the learning rate until the loss falls."""
    kept = [p.detach().clone() for p in model.parameters()]
    for group in optimizer.param_groups:
        group["lr"] = 4.0
    for _ in range(most):
        optimizer.step()
        if evaluate() < before:
            return True
        with torch.no_grad():
            for p, old in zip(model.parameters(), kept, strict=True):
                p.copy_(old)
        for group in optimizer.param_groups:
            group["lr"] /= 2
    return False


def main():
    torch.manual_seed(0)
    x = torch.randn(64, 5)
    y, label = 3 * x[:, 0] * x[:, 1], (x[:, 2] > 0).long()
    model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=4.0)
    balance = nn.Parameter(torch.ones(2))
    balancer = torch.optim.SGD([balance], lr=0.05)
    first = None
    for step in range(8):
        loss, tasks = loss_of(model, balance, x, y, label)
        first = tasks.detach() if first is None else first
        optimizer.zero_grad()
        loss.backward()

        def evaluate():
            with torch.no_grad():
                return loss_of(model, balance, x, y, label)[0]

        moved = step_back_and_forth(model, optimizer, evaluate, loss.detach())
        balance.grad = (1 - tasks / first).detach()
        balancer.step()
        with torch.no_grad():
            balance.clamp_(0.2).mul_(2 / balance.sum())
        print(f"step {step} loss {loss.item():.4f} moved {moved} {balance.tolist()}")


if __name__ == "__main__":
    main()
