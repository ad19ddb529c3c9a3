import torch
import torch.nn as nn


class DensifyStrategy:
    """Clones Gaussians whose screen-space position keeps being pulled around."""

    def __init__(self, grow_grad=8e-5, every=20, start=10, stop=140, cap=160, jitter=0.05):
        self.grow_grad, self.every = grow_grad, every
        self.start, self.stop, self.cap, self.jitter = start, stop, cap, jitter
        self.grad_sum, self.count = None, 0

    def observe(self, info):
        grad = info["means2d"].grad  # <~ GS306
        if grad is None:
            return
        if self.grad_sum is None:
            self.grad_sum = torch.zeros(info["n"])
        self.grad_sum += grad.norm(dim=-1)
        self.count += 1

    @torch.no_grad()
    def grow(self, params, step, gen):
        if not (self.start <= step < self.stop) or step % self.every or self.count == 0:
            return 0
        score = self.grad_sum / self.count
        self.grad_sum, self.count = None, 0
        picked = torch.nonzero(score > self.grow_grad).flatten()
        picked = picked[: max(0, self.cap - score.numel())]
        if picked.numel() == 0:
            return 0
        for name in list(params.keys()):
            extra = params[name][picked].clone()
            if name == "means":
                extra[:, :2] += self.jitter * torch.randn(extra.shape[0], 2, generator=gen)
            params[name] = nn.Parameter(torch.cat([params[name], extra]))
        params["log_scales"][picked] -= 0.3
        params["log_scales"][-picked.numel() :] -= 0.3
        return picked.numel()
