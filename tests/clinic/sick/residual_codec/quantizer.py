import torch
import torch.nn.functional as F
from torch import nn


class VectorQuantizer(nn.Module):
    def __init__(self, dim, codes, commitment=0.25):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        nn.init.normal_(self.codebook.weight, std=0.5)
        self.commitment = commitment

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        distances = torch.cdist(flat.detach(), self.codebook.weight.detach())
        indices = distances.argmin(dim=-1).view(x.shape[:-1])
        codes = self.codebook(indices)
        codebook_loss = F.mse_loss(codes, x.detach())
        commit_loss = self.commitment * F.mse_loss(x, codes.detach())
        quantized = x + (codes - x).detach()
        return quantized, indices, codebook_loss, commit_loss


class ResidualQuantizer(nn.Module):
    """A stack of quantizers, each of which codes what the one before left over."""

    def __init__(self, dim, codes, stages):
        super().__init__()
        self.stages = nn.ModuleList(VectorQuantizer(dim, codes) for _ in range(stages))

    def forward(self, x):
        residual, total = x, 0.0
        all_indices, codebook_losses, commit_losses = [], [], []
        for stage in self.stages:
            quantized, indices, codebook_loss, commit_loss = stage(residual)
            residual = residual - quantized  # <- GS000
            total = total + quantized
            all_indices.append(indices)
            codebook_losses.append(codebook_loss)
            commit_losses.append(commit_loss)
        out = x + (total - x).detach()
        return (
            out,
            torch.stack(all_indices, dim=-1),
            torch.stack(codebook_losses),
            torch.stack(commit_losses),
        )
