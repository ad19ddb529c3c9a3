import torch
import torch.nn as nn
import torch.nn.functional as F


class DenseBlock(nn.Module):
    """Densely connected dilated convolutions with a 1x1 fusion and a skip."""

    def __init__(self, n_feats, growth=8, n_layers=3):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv2d(n_feats + i * growth, growth, 3, padding=i + 1, dilation=i + 1)
            for i in range(n_layers)
        )
        self.fuse = nn.Conv2d(n_feats + n_layers * growth, n_feats, 1)

    def forward(self, x):
        feats = x
        for layer in self.layers:
            feats = torch.cat([feats, F.relu(layer(feats))], dim=1)
        return x + self.fuse(feats)


class CoarseSpatialBlock(nn.Module):
    """Lets the four quadrants of a feature map exchange information."""

    def __init__(self, n_feats):
        super().__init__()
        self.mix = nn.Conv2d(4 * n_feats, 4 * n_feats, 1, bias=False)

    def forward(self, x):
        h, w = x.size(2) // 2, x.size(3) // 2
        quads = [
            (slice(0, h), slice(0, w)),
            (slice(h, None), slice(0, w)),
            (slice(0, h), slice(w, None)),
            (slice(h, None), slice(w, None)),
        ]
        mixed = self.mix(torch.cat([x[:, :, r, c] for r, c in quads], dim=1))
        out = x  # <- GS401
        for (r, c), part in zip(quads, mixed.chunk(4, dim=1)):
            out[:, :, r, c] = part  # <~ GS401
        return out


class ChannelGate(nn.Module):
    def forward(self, x):
        return x + x * torch.sigmoid(F.adaptive_avg_pool2d(x, 1))


class AttentionBlock(nn.Module):
    """Features from the dense branch, weighted by the attention branch."""

    def __init__(self, n_feats):
        super().__init__()
        self.dense = DenseBlock(n_feats)
        self.coarse = CoarseSpatialBlock(n_feats)
        self.gate = ChannelGate()
        self.to_mask = nn.Conv2d(n_feats, n_feats, 3, padding=1, bias=False)

    def forward(self, x):
        body = self.dense(x)
        mask = torch.sigmoid(self.to_mask(self.gate(self.coarse(x))))
        return body * mask
