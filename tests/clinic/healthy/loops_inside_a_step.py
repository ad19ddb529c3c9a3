"""A Gaussian process whose Cholesky factor is tried with ever more jitter, and whose penalty is
added up by layer: both loops begin anew in every step."""

import torch
from torch import nn


class Warped(nn.Module):
    """Features in double precision, and a parameter without elements that knows the device."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 16), nn.Linear(16, 2)])
        self.log_scale = nn.Parameter(torch.tensor(0.0))
        self.where = nn.Parameter(torch.empty(0))

    def forward(self, x):
        x = x.to(self.where.device)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def factor_of(covariance, jitter=1e-3, tries=6):
    fixed, before = covariance.clone(), 0.0
    for attempt in range(tries):
        now = jitter * 10**attempt
        fixed.diagonal().add_(now - before)
        before = now
        factor, failed = torch.linalg.cholesky_ex(fixed)
        if not failed.any():
            return factor
    raise ValueError("not positive definite")


def penalty_of(model):
    total = 0.0
    for layer in model.layers:
        total += layer.weight.abs().mean()
    return total


def main():
    torch.manual_seed(0)
    model = Warped().double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    x = torch.rand(24, 2, dtype=torch.double)
    y = (4 * x[:, 0]).sin() * x[:, 1]
    best = None
    for step in range(24):
        optimizer.zero_grad()
        z = model(x)
        covariance = torch.exp(-0.5 * torch.cdist(z, z).square())
        # The kernel of data that was rounded: not positive definite by a little.
        covariance = covariance - 0.02 * torch.eye(len(x), dtype=torch.double)
        factor = factor_of(covariance)
        white = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
        fit = 0.5 * white.square().mean() * (-model.log_scale).exp() + 0.5 * model.log_scale
        loss = fit + factor.diagonal().log().mean() + 1e-3 * penalty_of(model)
        loss.backward()
        optimizer.step()
        best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        if step % 8 == 0:
            print(step, round(loss.item(), 3), len(best))


if __name__ == "__main__":
    main()
