import torch
import torch.nn as nn
import torch.nn.functional as F


class FeatureNet(nn.Module):
    """Fixed multi-scale filter bank."""

    def __init__(self, seed=0, widths=(12, 20)):
        super().__init__()
        gen = torch.Generator().manual_seed(seed)
        self.convs = nn.ModuleList()
        c_in = 3
        for w in widths:
            conv = nn.Conv2d(c_in, w, 3, padding=1)
            with torch.no_grad():
                conv.weight.copy_(
                    torch.randn(conv.weight.shape, generator=gen) * (2.0 / (9 * c_in)) ** 0.5
                )
                conv.bias.zero_()
            self.convs.append(conv)
            c_in = w
        self.requires_grad_(False)
        self.eval()

    def forward(self, x):
        feats = []
        for conv in self.convs:
            x = F.relu(conv(x))
            feats.append(x)
            x = F.avg_pool2d(x, 2)
        return feats


def gram(feat):
    b, c, h, w = feat.shape
    f = feat.view(b, c, h * w)
    return f @ f.transpose(1, 2) / (h * w)
