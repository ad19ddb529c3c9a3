import math

import torch


def uv_sphere(n_lat=10, n_lon=14):
    """Vertices and undirected edges of a latitude-longitude sphere."""
    verts, edges = [], []
    for i in range(n_lat):
        theta = math.pi * (i + 0.5) / n_lat
        for j in range(n_lon):
            phi = 2 * math.pi * j / n_lon
            verts.append(
                [math.sin(theta) * math.cos(phi), math.sin(theta) * math.sin(phi), math.cos(theta)]
            )
            k = i * n_lon + j
            edges.append([k, i * n_lon + (j + 1) % n_lon])
            if i + 1 < n_lat:
                edges.append([k, k + n_lon])
    return torch.tensor(verts), torch.tensor(edges)


def make_batch(verts, batch_size, feat_dim, gen):
    """Bumpy target shapes with per-vertex image features that describe the bumps."""
    coef = torch.randn(batch_size, 4, generator=gen)
    x, y, z = verts.unbind(-1)
    basis = torch.stack([(3 * x).sin(), (3 * y).cos(), x * y * 2, (4 * z).sin()], dim=-1)
    radius = 1.0 + 0.15 * torch.einsum("bk,vk->bv", coef, basis)
    target = verts[None] * radius[..., None]
    mix = torch.linspace(-1, 1, 4 * feat_dim).reshape(4, feat_dim).cos()
    feats = (coef[:, None, :] * basis[None]) @ mix
    feats = feats + 0.02 * torch.randn(feats.shape, generator=gen)
    return feats, target
