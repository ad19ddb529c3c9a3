"""Learned extended Kalman filter: the transition is a network, linearised by its Jacobian."""

import torch
import torch.nn as nn

from trainer import Module, Trainer

DIM = 3


class LearnedFilter(Module):
    def __init__(self, lr=1e-2):
        super().__init__()
        self.lr = lr
        self.transition = nn.Sequential(nn.Linear(DIM, 16), nn.Tanh(), nn.Linear(16, DIM))
        self.log_q = nn.Parameter(torch.zeros(DIM))
        self.log_r = nn.Parameter(torch.zeros(DIM))

    def linearise(self, x):
        """F(x) and dF/dx at a batch of states."""
        with torch.enable_grad():
            if not x.requires_grad:
                x = x.detach().requires_grad_(True)
            y = x + self.transition(x)
            rows = [
                torch.autograd.grad(
                    y[:, i].sum(), x, create_graph=self.training, retain_graph=True
                )[0]
                for i in range(DIM)
            ]
        return y, torch.stack(rows, dim=1)

    def forward(self, observations):
        b, steps, _ = observations.shape
        state = observations[:, 0]
        cov = torch.eye(DIM).repeat(b, 1, 1)
        estimates = [state]
        for t in range(1, steps):
            state, jac = self.linearise(state)
            cov = jac @ cov @ jac.transpose(1, 2) + torch.diag(self.log_q.exp())
            gain = torch.linalg.solve(cov + torch.diag(self.log_r.exp()), cov).transpose(1, 2)
            innovation = (observations[:, t] - state).unsqueeze(-1)
            state = state + (gain @ innovation).squeeze(-1)
            cov = (torch.eye(DIM) - gain) @ cov
            estimates.append(state)
        return torch.stack(estimates, dim=1)

    def training_step(self, batch):
        observations, truth = batch
        return (self(observations) - truth).pow(2).mean()

    def test_step(self, batch):
        observations, truth = batch
        return (self(observations) - truth).pow(2).mean().item()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def simulate(batches, seed, size=16, steps=8):
    g = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(batches):
        x = torch.randn(size, DIM, generator=g)
        path = [x]
        for _ in range(steps - 1):
            x = x + 0.2 * torch.stack([x[:, 1], -torch.sin(x[:, 0]), -0.3 * x[:, 2]], dim=1)
            path.append(x)
        truth = torch.stack(path, dim=1)
        out.append((truth + 0.4 * torch.randn(truth.shape, generator=g), truth))
    return out


def main():
    torch.manual_seed(3)
    module = LearnedFilter()
    trainer = Trainer(max_epochs=1)  # <~ GS304
    trainer.fit(module, simulate(4, seed=0))
    trainer.test(module, simulate(2, seed=1))


if __name__ == "__main__":
    main()
