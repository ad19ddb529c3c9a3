import torch


def cost_matrix(x, y, p=2):
    return (x.unsqueeze(1) - y.unsqueeze(0)).abs().pow(p).sum(-1)


def sinkhorn(x, y, reg=5.0, iters=20):
    n, m = len(x), len(y)
    a = torch.full((n,), 1.0 / n)
    b = torch.full((m,), 1.0 / m)
    M = cost_matrix(x, y)
    K = torch.exp(-M / reg)
    u = torch.ones(n)
    for _ in range(iters):
        v = b / (K.t() @ u)
        u = a / (K @ v)
    plan = u[:, None] * K * v[None, :]
    return (plan * M).sum()
