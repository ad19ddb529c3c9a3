import torch


class SAM:
    """Two passes per update: climb to the worst nearby point, descend with the gradient there."""

    def __init__(self, base, rho=0.05):
        self.base = base
        self.rho = rho
        self._saved = []

    def _params(self):
        return [p for g in self.base.param_groups for p in g["params"] if p.grad is not None]

    @torch.no_grad()
    def first_step(self):
        params = self._params()
        norm = torch.linalg.vector_norm(
            torch.stack([torch.linalg.vector_norm(p.grad) for p in params])
        )
        self._saved = [(p, p.detach().clone()) for p in params]
        for p in params:
            p.add_(p.grad, alpha=self.rho / (norm.item() + 1e-12))
        self.base.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for p, old in self._saved:
            p.copy_(old)
        self._saved = []
        self.base.step()
        self.base.zero_grad()
