"""First-order MAML on sine regression."""

import torch
import torch.nn.functional as F
from torch.func import functional_call

from model import SineRegressor, SineTasks

CONFIG = {
    "seed": 0,
    "n_support": 10,
    "n_query": 20,
    "inner_lr": 0.03,
    "inner_steps": 3,
    "meta_lr": 4e-3,
    "meta_batch": 5,
    "meta_iters": 15,
    "log_every": 5,
}


def adapt(model, fast, support, lr, steps):
    """Plain gradient steps on the fast weights; every step starts a new graph."""
    x, y = support
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, fast, (x,)), y)
        grads = torch.autograd.grad(loss, list(fast.values()))
        fast = {
            name: (w - lr * g).detach().requires_grad_(True)
            for (name, w), g in zip(fast.items(), grads)
        }
    return fast


def fresh_weights(model):
    return {name: p.detach().clone().requires_grad_(True) for name, p in model.named_parameters()}


def meta_gradient(model, task, cfg):
    support, (xq, yq) = task
    fast = adapt(model, fresh_weights(model), support, cfg["inner_lr"], cfg["inner_steps"])
    loss = F.mse_loss(functional_call(model, fast, (xq,)), yq)
    grads = torch.autograd.grad(loss, list(fast.values()))
    return loss.item(), grads


def main(cfg=CONFIG):
    torch.manual_seed(cfg["seed"])
    tasks = SineTasks(cfg["seed"] + 1)
    model = SineRegressor()
    meta_opt = torch.optim.Adam(model.parameters(), lr=cfg["meta_lr"])
    window = []
    for it in range(1, cfg["meta_iters"] + 1):
        meta_opt.zero_grad()
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        total = 0.0
        for _ in range(cfg["meta_batch"]):
            loss, grads = meta_gradient(model, tasks.sample(cfg["n_support"], cfg["n_query"]), cfg)
            total += loss / cfg["meta_batch"]
            for p, g in zip(model.parameters(), grads):
                p.grad.add_(g, alpha=1.0 / cfg["meta_batch"])
        meta_opt.step()
        window.append(total)
        if it % cfg["log_every"] == 0:
            print(f"iter {it:4d}  query loss {sum(window) / len(window):.4f}")
            window = []


if __name__ == "__main__":
    main()
