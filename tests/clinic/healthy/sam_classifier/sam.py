import torch


class SAM:
    """Sharpness-aware minimization around a base optimizer."""

    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        self.params = list(params)
        self.base = base_optimizer(self.params, **kwargs)
        self.rho = rho
        self.offsets = []

    def zero_grad(self):
        self.base.zero_grad()

    @torch.no_grad()
    def ascend(self):
        grads = [p.grad for p in self.params]
        norm = torch.stack([g.norm() for g in grads]).norm()
        scale = self.rho / (norm + 1e-12)
        self.offsets = [g * scale for g in grads]
        for p, e in zip(self.params, self.offsets):
            p.add_(e)

    @torch.no_grad()
    def restore(self):
        for p, e in zip(self.params, self.offsets):
            p.sub_(e)
        self.offsets = []

    def step(self):
        self.restore()
        self.base.step()
