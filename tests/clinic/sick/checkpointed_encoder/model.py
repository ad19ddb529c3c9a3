import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class FeedForwardLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.lin1 = nn.Linear(dim, 2 * dim)
        self.lin2 = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.lin2(torch.nn.functional.gelu(self.lin1(self.norm(x))))


class UtteranceEncoder(nn.Module):
    """Stack of residual layers over precomputed utterance vectors, then mean pooling."""

    def __init__(self, dim, n_layers, use_checkpoint):
        super().__init__()
        self.use_checkpoint = use_checkpoint
        self.layers = nn.ModuleList(FeedForwardLayer(dim) for _ in range(n_layers))

    def forward(self, x):
        for layer in self.layers:
            if self.use_checkpoint and self.training:
                x = checkpoint(layer, x, use_reentrant=True)  # <- GS309
            else:
                x = layer(x)
        return x.mean(dim=1)


class ResponseSelector(nn.Module):
    """Scores candidate responses against a dialogue context."""

    def __init__(self, dim=32, n_layers=4, out_dim=24, use_checkpoint=True):
        super().__init__()
        self.context_encoder = UtteranceEncoder(dim, n_layers, use_checkpoint)
        self.candidate_encoder = UtteranceEncoder(dim, n_layers, use_checkpoint)
        self.context_proj = nn.Linear(dim, out_dim)
        self.candidate_proj = nn.Linear(dim, out_dim)

    def forward(self, context, candidates):
        c = self.context_proj(self.context_encoder(context))  # <~ GS309
        r = self.candidate_proj(self.candidate_encoder(candidates))  # <~ GS309
        return c @ r.t() / c.shape[1] ** 0.5
