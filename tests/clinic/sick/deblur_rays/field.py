import torch
import torch.nn as nn


def posenc(x, bands=3):
    out = [x]
    for k in range(bands):
        out += [torch.sin(2**k * x), torch.cos(2**k * x)]
    return torch.cat(out, -1)


class RadianceField(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(21, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 4),
        )

    def render(self, rays_o, rays_d, num_samples=8, near=0.5, far=2.5):
        z = torch.linspace(near, far, num_samples)
        pts = rays_o[..., None, :] + rays_d[..., None, :] * z[:, None]
        raw = self.net(posenc(pts))
        alpha = 1 - torch.exp(-torch.relu(raw[..., 3]) * (far - near) / num_samples)
        ones = torch.ones_like(alpha[..., :1])
        trans = torch.cumprod(torch.cat([ones, 1 - alpha + 1e-10], -1), -1)[..., :-1]
        return ((alpha * trans)[..., None] * torch.sigmoid(raw[..., :3])).sum(-2)
