import torch
import torch.nn as nn
import torch.nn.functional as F


class EMAQuantizer(nn.Module):
    """Nearest-code quantizer; codes follow a moving average of the encodings assigned to them."""

    def __init__(self, n_codes, dim, decay=0.9, beta=0.25, eps=1e-5):
        super().__init__()
        self.decay, self.beta, self.eps = decay, beta, eps
        codes = torch.randn(n_codes, dim)
        self.register_buffer("codes", codes)
        self.register_buffer("ema_count", torch.ones(n_codes))
        self.register_buffer("ema_sum", codes.clone())

    @torch.no_grad()
    def assign(self, flat):
        return torch.cdist(flat, self.codes).argmin(dim=1)

    @torch.no_grad()
    def update_codes(self, flat, idx):
        onehot = F.one_hot(idx, self.codes.shape[0]).type_as(flat)
        self.ema_count.lerp_(onehot.sum(0), 1 - self.decay)
        self.ema_sum.lerp_(onehot.t() @ flat, 1 - self.decay)
        self.codes.copy_(self.ema_sum / (self.ema_count + self.eps)[:, None])
        unused = self.ema_count < 0.05
        if unused.any():
            pick = torch.randint(flat.shape[0], (int(unused.sum()),))
            self.codes[unused] = flat[pick]
            self.ema_sum[unused] = flat[pick]
            self.ema_count[unused] = 1.0

    def forward(self, z):
        flat = z.permute(0, 2, 1).reshape(-1, z.shape[1])
        idx = self.assign(flat)
        quant = self.codes[idx].view(z.shape[0], z.shape[2], z.shape[1]).permute(0, 2, 1)
        commit = self.beta * F.mse_loss(z, quant)
        if self.training:
            self.update_codes(flat.detach(), idx)
        probs = torch.bincount(idx, minlength=self.codes.shape[0]).float() / idx.numel()
        perplexity = torch.exp(-(probs * (probs + 1e-10).log()).sum())
        return z + (quant - z).detach(), commit, perplexity
