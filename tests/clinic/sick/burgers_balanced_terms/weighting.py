import torch


class GradientBalance:
    """Weights the conditions so that their gradients come out equally strong."""

    def __init__(self, model, alpha=0.7):
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.alpha = alpha
        self.weights = {}

    def grad_norm(self):
        return torch.stack([p.grad.pow(2).sum() for p in self.params if p.grad is not None]).sum()

    def update(self, losses):
        norms = {}
        for name, loss in losses.items():
            loss.backward(retain_graph=True)  # <- GS000
            norms[name] = self.grad_norm().sqrt()  # <~ GS000
        total = sum(norms.values())
        for name, norm in norms.items():
            fresh = (total / (norm + 1e-12)).item()
            old = self.weights.get(name, fresh)
            self.weights[name] = self.alpha * old + (1 - self.alpha) * fresh
        return self.weights
