import torch
import torch.nn as nn
import torch.nn.functional as F


class EMAQuantizer(nn.Module):
    """Nearest code lookup; the codes follow running averages of the vectors assigned to them."""

    def __init__(self, num_codes, dim, decay=0.9, beta=0.25, eps=1e-5):
        super().__init__()
        self.decay, self.beta, self.eps = decay, beta, eps
        codes = 0.5 * torch.randn(num_codes, dim)
        self.register_buffer("codes", codes)
        self.register_buffer("cluster_size", torch.ones(num_codes))
        self.register_buffer("code_sum", codes.clone())

    @torch.no_grad()
    def _update(self, flat, onehot):
        self.cluster_size.lerp_(onehot.sum(0), 1 - self.decay)
        self.code_sum.lerp_(onehot.t() @ flat, 1 - self.decay)
        n = self.cluster_size.sum()
        size = (self.cluster_size + self.eps) / (n + len(self.codes) * self.eps) * n
        self.codes.copy_(self.code_sum / size.unsqueeze(1))

    def forward(self, z):
        flat = z.detach().reshape(-1, z.shape[-1])
        index = torch.cdist(flat, self.codes).argmin(1)
        quantized = self.codes[index].view_as(z)
        if self.training:
            self._update(flat, F.one_hot(index, len(self.codes)).type_as(flat))
        commit = self.beta * F.mse_loss(z, quantized.detach())
        return z + (quantized - z).detach(), commit, index
