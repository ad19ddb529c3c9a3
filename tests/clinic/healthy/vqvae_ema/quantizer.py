import torch
import torch.nn as nn
import torch.nn.functional as F


class EMAQuantizer(nn.Module):
    """Vector quantizer whose codebook follows moving averages of the encoder outputs."""

    def __init__(self, n_codes, dim, decay=0.95, commitment=0.25, eps=1e-5):
        super().__init__()
        self.decay, self.commitment, self.eps = decay, commitment, eps
        codes = torch.randn(n_codes, dim) * 0.3
        self.register_buffer("codebook", codes)
        self.register_buffer("cluster_size", torch.ones(n_codes))
        self.register_buffer("code_sum", codes.clone())

    @torch.no_grad()
    def _update(self, z, idx):
        one_hot = F.one_hot(idx, len(self.codebook)).to(z.dtype)
        self.cluster_size.mul_(self.decay).add_(one_hot.sum(0), alpha=1 - self.decay)
        self.code_sum.mul_(self.decay).add_(one_hot.t() @ z, alpha=1 - self.decay)
        total = self.cluster_size.sum()
        smoothed = (self.cluster_size + self.eps) / (total + len(self.codebook) * self.eps) * total
        self.codebook.copy_(self.code_sum / smoothed.unsqueeze(1))
        idle = self.cluster_size < 0.05
        if idle.any():
            picks = z[torch.randint(len(z), (int(idle.sum()),))]
            self.codebook[idle] = picks
            self.code_sum[idle] = picks
            self.cluster_size[idle] = 1.0

    def forward(self, z):
        with torch.no_grad():
            idx = torch.cdist(z, self.codebook).argmin(1)
        quantized = self.codebook[idx]
        commit = self.commitment * F.mse_loss(z, quantized)
        if self.training:
            self._update(z.detach(), idx)
        usage = torch.bincount(idx, minlength=len(self.codebook)).float() / len(idx)
        perplexity = torch.exp(-(usage * (usage + 1e-10).log()).sum())
        return z + (quantized - z).detach(), commit, perplexity
