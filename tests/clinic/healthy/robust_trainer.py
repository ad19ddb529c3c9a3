"""Deep-kernel regression by a trainer that survives what its data and its memory do to it."""

import copy
import logging
import math

import torch
from torch import nn

log = logging.getLogger("robust")
logging.basicConfig(level=logging.INFO, format="%(message)s")


class DeepKernel(nn.Module):
    def __init__(self, n_in=6, hidden=24, features=3, budget=4096):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(n_in, hidden), nn.Tanh(), nn.Linear(hidden, features)
        )
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.log_noise = nn.Parameter(torch.tensor(-1.0))
        self.budget = budget

    def kernel(self, a, b):
        squared = (a.unsqueeze(1) - b.unsqueeze(0)).pow(2).sum(-1)
        return self.log_scale.exp() * torch.exp(-0.5 * squared)

    def forward(self, x):
        z = self.features(x)
        if len(z) ** 2 > self.budget:
            raise MemoryError(f"{len(z)} points need {len(z) ** 2} cells, {self.budget} allowed")
        return self.kernel(z, z)


def safe_cholesky(matrix, jitters=(0.0, 1e-6, 1e-4)):
    eye = torch.eye(len(matrix))
    for jitter in jitters:
        try:
            return torch.linalg.cholesky(matrix + jitter * eye)
        except torch.linalg.LinAlgError:
            log.info("not positive definite with jitter %g", jitter)
    raise torch.linalg.LinAlgError("not positive definite")


def negative_log_likelihood(model, x, y):
    covariance = model(x) + model.log_noise.exp() * torch.eye(len(x))
    chol = safe_cholesky(covariance)
    alpha = torch.cholesky_solve(y.unsqueeze(1), chol).squeeze(1)
    value = 0.5 * y @ alpha + chol.diagonal().log().sum() + 0.5 * len(y) * math.log(2 * math.pi)
    return value / len(y)


def invert_kernel_check(model, x):
    """The kernel without noise is singular when points repeat; the jitter has to save it."""
    with torch.no_grad():
        return safe_cholesky(model(x.repeat(2, 1))).diagonal().min().item()


class RobustTrainer:
    def __init__(self, model, lr=0.04, batch=256, tolerance=0.75):
        self.model, self.batch, self.tolerance = model, batch, tolerance
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.best, self.snapshot = math.inf, None
        self.counts = {"step": 0, "halved": 0, "skipped": 0, "rolled back": 0}

    def save(self, value):
        self.best = value
        self.snapshot = copy.deepcopy((self.model.state_dict(), self.optimizer.state_dict()))

    def roll_back(self):
        model_state, optimizer_state = copy.deepcopy(self.snapshot)
        self.model.load_state_dict(model_state)
        self.optimizer.load_state_dict(optimizer_state)
        for group in self.optimizer.param_groups:
            group["lr"] *= 0.5
        self.counts["rolled back"] += 1

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = negative_log_likelihood(self.model, x, y)
        loss.backward()
        finite = all(torch.isfinite(p.grad).all() for p in self.model.parameters())
        if not finite:
            self.optimizer.zero_grad()
            self.counts["skipped"] += 1
            return None
        self.optimizer.step()
        self.counts["step"] += 1
        return loss.item()

    def epoch(self, x, y):
        losses, start = [], 0
        order = torch.randperm(len(x))
        while start < len(order):
            ids = order[start : start + self.batch]
            try:
                value = self.step(x[ids], y[ids])
            except MemoryError as error:
                log.info("%s: batch of %d halved", error, self.batch)
                self.batch //= 2
                self.counts["halved"] += 1
                continue
            start += len(ids)
            if value is not None:
                losses.append(value)
        mean = sum(losses) / max(1, len(losses))
        if mean > self.best + self.tolerance:
            self.roll_back()
        elif mean < self.best:
            self.save(mean)
        return mean


def readings(epoch, n=250):
    """One day of sensor readings: some days miss a value, on one day the gain was wrong."""
    x = torch.randn(n, 6)
    y = torch.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1] + 0.1 * torch.randn(n)
    if epoch % 3 == 1:
        y[17] = float("nan")
    if epoch == 6:
        y = 8.0 * y
    return x, y


def main():
    torch.manual_seed(0)
    model = DeepKernel()
    trainer = RobustTrainer(model)
    for epoch in range(9):
        x, y = readings(epoch)
        log.info("epoch %d loss %.3f %s", epoch, trainer.epoch(x, y), trainer.counts)
    log.info("smallest pivot %.1e", invert_kernel_check(model, x[:8]))


if __name__ == "__main__":
    main()
