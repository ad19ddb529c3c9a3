import torch
import torch.nn as nn


class VectorQuantizer(nn.Module):
    def __init__(self, num_latents, latent_dim):
        super().__init__()
        self.codebook = nn.Embedding(num_latents, latent_dim)
        self.codebook.weight.data.uniform_(-1.0 / num_latents, 1.0 / num_latents)

    def forward(self, x):
        distance = torch.cdist(x, self.codebook.weight)
        indices = torch.argmin(distance, dim=-1)
        z = self.codebook(indices)
        z_q = x + (z - x).detach()
        return z_q, z, x, indices


class MLP(nn.Sequential):
    def __init__(self, d_in, hidden, d_out):
        super().__init__(nn.Linear(d_in, hidden), nn.GELU(), nn.Linear(hidden, d_out))
