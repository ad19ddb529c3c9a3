import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    """Three stages; every stage's output is used for the cross-correlation."""

    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU())
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
            for _ in range(3)
        )

    def forward(self, x):
        x = self.stem(x)
        outs = []
        for stage in self.stages:
            x = stage(x)
            outs.append(x)
        return outs


def xcorr_depthwise(search, kernel):
    batch, channels = kernel.shape[:2]
    out = F.conv2d(
        search.reshape(1, batch * channels, *search.shape[2:]),
        kernel.reshape(batch * channels, 1, *kernel.shape[2:]),
        groups=batch * channels,
    )
    return out.reshape(batch, channels, *out.shape[2:]) / kernel[0, 0].numel()


class Head(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        tower = []
        for _ in range(layers):
            tower += [nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(4, width), nn.ReLU()]
        self.tower = nn.Sequential(*tower)
        self.cls = nn.Conv2d(width, 2, 1)
        self.loc = nn.Conv2d(width, 4, 1)
        self.cen = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        x = self.tower(x)
        return self.cls(x), F.softplus(self.loc(x)), self.cen(x)


class SiameseTracker(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.backbone = Backbone(cfg.channels)
        self.down = nn.ConvTranspose2d(3 * cfg.channels, cfg.channels, 1, 1)  # <~ GS307
        self.head = Head(cfg.channels, cfg.head_layers)

    def forward(self, template, search):
        zs, xs = self.backbone(template), self.backbone(search)
        features = torch.cat([xcorr_depthwise(x, z) for x, z in zip(xs, zs)], dim=1)
        return self.head(self.down(features))
