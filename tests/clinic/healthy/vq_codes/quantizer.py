import torch
import torch.nn.functional as F
from torch import nn


class EMAQuantizer(nn.Module):
    """Nearest-code quantizer whose codebook follows running means of the encodings."""

    def __init__(self, num_codes, dim, decay=0.95, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        codes = torch.randn(num_codes, dim)
        self.register_buffer("codebook", codes)
        self.register_buffer("count", torch.ones(num_codes))
        self.register_buffer("total", codes.clone())
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def init_codes(self, z):
        pick = torch.randperm(len(z))[: len(self.codebook)]
        self.codebook.copy_(z[pick])
        self.total.copy_(z[pick])
        self.ready.fill_(True)

    @torch.no_grad()
    def update(self, z, idx):
        onehot = F.one_hot(idx, len(self.codebook)).to(z.dtype)
        self.count.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(onehot.T @ z, alpha=1 - self.decay)
        n = self.count.sum()
        smooth = (self.count + self.eps) / (n + len(self.count) * self.eps) * n
        self.codebook.copy_(self.total / smooth.unsqueeze(1))

    def forward(self, z):
        if self.training and not self.ready:
            self.init_codes(z.detach())
        idx = torch.cdist(z.detach(), self.codebook).argmin(1)
        q = self.codebook[idx]
        if self.training:
            self.update(z.detach(), idx)
        commit = F.mse_loss(z, q.detach())
        return z + (q - z).detach(), commit, idx
