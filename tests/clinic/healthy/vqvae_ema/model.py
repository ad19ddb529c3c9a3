import torch
import torch.nn as nn

from quantizer import EMAQuantizer


class VQVAE(nn.Module):
    """Codes waveforms as a few tokens each."""

    def __init__(self, length=32, n_tokens=4, code_dim=8, n_codes=24, hidden=64):
        super().__init__()
        self.n_tokens, self.code_dim = n_tokens, code_dim
        self.encoder = nn.Sequential(
            nn.Linear(length, hidden), nn.GELU(), nn.Linear(hidden, n_tokens * code_dim)
        )
        self.quantizer = EMAQuantizer(n_codes, code_dim)
        self.decoder = nn.Sequential(
            nn.Linear(n_tokens * code_dim, hidden), nn.GELU(), nn.Linear(hidden, length)
        )

    def forward(self, x):
        z = self.encoder(x).view(-1, self.code_dim)
        q, commit, perplexity = self.quantizer(z)
        return self.decoder(q.view(len(x), -1)), commit, perplexity


def sample_waves(n, length=32):
    t = torch.linspace(0, 1, length)
    freq = torch.randint(1, 4, (n, 1)).float()
    phase = torch.randint(0, 4, (n, 1)).float() * torch.pi / 2
    amp = 0.6 + 0.4 * torch.rand(n, 1)
    return amp * torch.sin(2 * torch.pi * freq * t + phase) + 0.03 * torch.randn(n, length)
