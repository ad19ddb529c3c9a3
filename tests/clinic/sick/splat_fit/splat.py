import math

import torch
import torch.nn as nn


def make_params(n, gen):
    """Gaussians in camera space, in front of a pinhole camera."""
    xy = torch.rand(n, 2, generator=gen) * 1.6 - 0.8
    z = torch.full((n, 1), 2.0) + 0.1 * torch.randn(n, 1, generator=gen)
    return nn.ParameterDict(
        {
            "means": nn.Parameter(torch.cat([xy, z], dim=1)),
            "log_scales": nn.Parameter(torch.full((n,), math.log(0.16))),
            "colors": nn.Parameter(torch.rand(n, 3, generator=gen)),
            "opacities": nn.Parameter(torch.zeros(n)),
        }
    )


def pixel_grid(size):
    r = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(r, r, indexing="ij")
    return torch.stack([xx, yy], dim=-1).reshape(-1, 2)


def rasterize(params, pixels, focal=2.0):
    """Order-independent blending of projected Gaussians; returns image and raster info."""
    means = params["means"]
    depth = means[:, 2:].clamp(min=0.1)
    means2d = focal * means[:, :2] / depth  # <~ GS306
    scales = params["log_scales"].exp() * focal / depth[:, 0]
    d2 = (pixels[:, None, :] - means2d[None, :, :]).pow(2).sum(-1)
    alpha = torch.sigmoid(params["opacities"]) * torch.exp(-0.5 * d2 / scales.pow(2))
    weights = alpha / (alpha.sum(dim=1, keepdim=True) + 0.05)
    image = weights @ torch.sigmoid(params["colors"])
    info = {"means2d": means2d, "radii": 3.0 * scales.detach(), "n": means.shape[0]}
    return image, info
