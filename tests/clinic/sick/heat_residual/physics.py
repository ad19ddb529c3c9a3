import torch


def derivative(u, wrt):
    ones = torch.ones_like(u)
    (g,) = torch.autograd.grad(u, wrt, ones, create_graph=True, allow_unused=True)  # <~ GS306
    return torch.zeros_like(wrt) if g is None else g


class HeatResidual:
    """u_t - alpha * u_xx, evaluated at collocation points."""

    def __init__(self, net, alpha):
        self.net = net
        self.alpha = alpha

    def __call__(self, xt):
        xt = xt.requires_grad_(True)
        u = self.net(xt)
        x, t = xt[:, 0:1], xt[:, 1:2]  # <- GS306
        u_t = derivative(u, t)  # <~ GS306
        u_x = derivative(u, x)  # <~ GS306
        u_xx = derivative(u_x, x) if u_x.requires_grad else torch.zeros_like(u_x)
        return u_t - self.alpha * u_xx


def collocation_points(n):
    return torch.rand(n, 2)


def boundary_points(n):
    x = torch.rand(n, 1)
    initial = torch.cat([x, torch.zeros_like(x)], dim=1)
    t = torch.rand(n, 1)
    wall = torch.cat([torch.randint(0, 2, (n, 1)).float(), t], dim=1)
    points = torch.cat([initial, wall])
    values = torch.cat([torch.sin(torch.pi * x), torch.zeros_like(t)])
    return points, values
