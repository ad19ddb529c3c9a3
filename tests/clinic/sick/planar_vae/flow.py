import torch
from torch import nn
import torch.nn.functional as F


class PlanarFlow(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.u = nn.Parameter(0.1 * torch.randn(dim))
        self.w = nn.Parameter(0.1 * torch.randn(dim))
        self.b = nn.Parameter(torch.zeros(1))

    def forward(self, z):
        uw = self.u @ self.w
        u_hat = self.u + (F.softplus(uw) - 1 - uw) * self.w / (self.w @ self.w + 1e-8)
        a = torch.tanh(z @ self.w + self.b)
        f = z + u_hat * a[:, None]
        psi = (1 - a**2)[:, None] * self.w
        return f, torch.log((1 + psi @ u_hat).abs() + 1e-8)


class NormalizingFlows(nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        self.flows = nn.ModuleList(PlanarFlow(dim) for _ in range(length))

    def forward(self, z):
        """Returns the last z and the logarithm of the determinant of each sample."""
        dets = []
        for flow in self.flows:
            z, det = flow(z)
            dets.append(det)
        return z, torch.stack(dets).sum(dim=0)
