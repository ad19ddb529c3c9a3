"""L-BFGS ought to fit four numbers in a few steps; it runs away."""

import torch

torch.manual_seed(0)


class Curve:
    """A sum of two exponentials, fitted to noisy counts."""

    def __init__(self, t, counts):
        self.t, self.counts = t, counts
        self.log_rates = torch.tensor([0.0, -2.0], requires_grad=True)
        self.heights = torch.tensor([1.0, 0.5], requires_grad=True)
        self.optimizer = torch.optim.LBFGS([self.log_rates, self.heights], lr=0.2, max_iter=6)

    def loss(self):
        rates = self.log_rates.exp()
        curve = (self.heights * torch.exp(-rates * self.t[:, None])).sum(1)
        return (curve - self.counts).pow(2).mean()

    def evaluate(self):
        loss = self.loss()
        loss.backward()  # <~ GS501
        return loss

    def fit(self, steps):
        for step in range(steps):
            self.optimizer.zero_grad()  # <- GS501
            loss = self.optimizer.step(self.evaluate)
            print(f"step {step} loss {loss.item():.5f}")


t = torch.linspace(0, 8, 60)
counts = 2.0 * torch.exp(-1.5 * t) + 0.8 * torch.exp(-0.2 * t) + 0.02 * torch.randn(60)
Curve(t, counts).fit(steps=5)
