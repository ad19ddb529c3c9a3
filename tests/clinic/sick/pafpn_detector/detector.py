import torch
import torch.nn as nn
import torch.nn.functional as F

from neck import PAFPN


class Backbone(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(cin, cout, 3, stride=2, padding=1), nn.BatchNorm2d(cout), nn.ReLU()
            )
            for cin, cout in zip([1] + widths[:-1], widths)
        )

    def forward(self, x):
        outs = []
        for stage in self.stages:
            x = stage(x)
            outs.append(x)
        return outs


class Detector(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.backbone = Backbone(cfg["widths"])
        self.neck = PAFPN(cfg["widths"], cfg["neck_channels"], act_cfg=cfg["act_cfg"])
        self.head = nn.Conv2d(cfg["neck_channels"], 1, 1)

    def forward(self, images):
        return [self.head(feat) for feat in self.neck(self.backbone(images))]

    def loss(self, images, masks):
        losses = []
        for score in self(images):
            target = F.adaptive_max_pool2d(masks, score.shape[2:])
            losses.append(F.binary_cross_entropy_with_logits(score, target))
        return torch.stack(losses).mean()
