"""An optimizer of one's own, in the old style: its step reads and writes through .data only."""

import math

import torch
from torch import nn


class Rosette(torch.optim.Optimizer):
    """Adam with a momentum that forgets where the sign of the gradient turns."""

    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), eps=1e-8):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps))

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, p.grad.data, group)
        return loss

    def _move(self, p, grad, group):
        state = self.state[p]
        if not state:
            state.update(t=0, mean=torch.zeros_like(p.data), square=torch.zeros_like(p.data))
        state["t"] += 1
        fast, slow = group["betas"]
        turned = (state["mean"] * grad) < 0
        state["mean"].masked_fill_(turned, 0.0).mul_(fast).add_(grad, alpha=1 - fast)
        state["square"].mul_(slow).addcmul_(grad, grad, value=1 - slow)
        rate = group["lr"] * math.sqrt(1 - slow ** state["t"]) / (1 - fast ** state["t"])
        p.data.addcdiv_(state["mean"], state["square"].sqrt().add_(group["eps"]), value=-rate)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = Rosette(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)
    for step in range(30):
        x = torch.randn(64, 4)
        target = (x[:, :1] * x[:, 1:2]).sin()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 10 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    main()
