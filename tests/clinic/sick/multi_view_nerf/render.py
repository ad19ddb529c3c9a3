import torch


def sample_along_rays(origins, directions, near, far, count):
    t = torch.linspace(near, far, count).expand(len(origins), count)
    t = t + torch.rand(len(origins), count) * (far - near) / count
    return origins[:, None] + t[..., None] * directions[:, None], t


def composite(density, rgb, t):
    delta = torch.cat([t[:, 1:] - t[:, :-1], torch.full_like(t[:, :1], 0.3)], -1)
    alpha = 1 - torch.exp(-density * delta)
    ones = torch.ones_like(alpha[:, :1])
    transmittance = torch.cumprod(torch.cat([ones, 1 - alpha + 1e-6], -1), -1)[:, :-1]
    weights = alpha * transmittance
    colour = (weights[..., None] * rgb).sum(1)
    return colour + (1 - weights.sum(1, keepdim=True)), weights
