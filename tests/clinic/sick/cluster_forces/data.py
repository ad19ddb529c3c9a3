import torch
from torch.utils.data import DataLoader, TensorDataset


def reference(pos, depth=1.0, r0=1.2, a=1.5):
    """Morse clusters: energies and forces."""
    pos = pos.clone().requires_grad_(True)
    n = pos.shape[1]
    i, j = torch.triu_indices(n, n, offset=1)
    r = (pos[:, i] - pos[:, j]).norm(dim=-1)
    e = (depth * ((1 - torch.exp(-a * (r - r0))) ** 2 - 1)).clamp(max=4.0).sum(dim=1)
    (g,) = torch.autograd.grad(e.sum(), pos)
    return e.detach(), -g


def make_loaders(n_train, n_val, batch_size, gen):
    grid = torch.tensor([[x, y, z] for x in (0.0, 1.2) for y in (0.0, 1.2) for z in (0.0, 1.2)])
    pos = grid[None] + 0.1 * torch.randn(n_train + n_val, 8, 3, generator=gen)
    energy, forces = reference(pos)
    energy = energy - energy.mean()
    parts = [
        TensorDataset(pos[s], energy[s], forces[s])
        for s in (slice(0, n_train), slice(n_train, None))
    ]
    train = DataLoader(parts[0], batch_size=batch_size, shuffle=True, generator=gen)
    return train, DataLoader(parts[1], batch_size=batch_size)
