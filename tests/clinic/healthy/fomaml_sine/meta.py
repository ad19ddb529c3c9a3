import torch
import torch.nn.functional as F
from torch.func import functional_call


def adapt(model, params, x, y, steps, lr):
    """Plain gradient descent on the support set, starting from the given weights."""
    fast = {k: v.detach().clone().requires_grad_(True) for k, v in params.items()}
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, fast, (x,)), y)
        grads = torch.autograd.grad(loss, list(fast.values()))
        fast = {
            k: (v - lr * g).detach().requires_grad_(True) for (k, v), g in zip(fast.items(), grads)
        }
    return fast


class FirstOrderMAML:
    def __init__(self, model, inner_lr, inner_steps, outer_lr):
        self.model, self.inner_lr, self.inner_steps = model, inner_lr, inner_steps
        self.optimizer = torch.optim.Adam(model.parameters(), lr=outer_lr)

    def meta_step(self, tasks):
        params = dict(self.model.named_parameters())
        self.optimizer.zero_grad()
        total = 0.0
        for (xs, ys), (xq, yq) in tasks:
            fast = adapt(self.model, params, xs, ys, self.inner_steps, self.inner_lr)
            loss = F.mse_loss(functional_call(self.model, fast, (xq,)), yq)
            grads = torch.autograd.grad(loss, list(fast.values()))
            for p, g in zip(params.values(), grads):
                p.grad = g / len(tasks) if p.grad is None else p.grad + g / len(tasks)
            total += loss.item()
        self.optimizer.step()
        return total / len(tasks)

    def evaluate(self, tasks):
        losses = []
        for (xs, ys), (xq, yq) in tasks:
            fast = adapt(
                self.model,
                dict(self.model.named_parameters()),
                xs,
                ys,
                self.inner_steps,
                self.inner_lr,
            )
            with torch.no_grad():
                losses.append(F.mse_loss(functional_call(self.model, fast, (xq,)), yq).item())
        return sum(losses) / len(losses)
