import torch.nn as nn
import torch.nn.functional as F


class ConvModule(nn.Module):
    def __init__(self, cin, cout, kernel, stride=1, act_cfg=None):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, kernel, stride=stride, padding=kernel // 2)
        self.activate = nn.ReLU() if act_cfg and act_cfg["type"] == "ReLU" else None

    def forward(self, x):
        x = self.conv(x)
        return x if self.activate is None else self.activate(x)


class PAFPN(nn.Module):
    """Top-down pyramid followed by a bottom-up path."""

    def __init__(self, in_channels, out_channels, act_cfg=None):
        super().__init__()
        self.num_levels = len(in_channels)
        self.lateral_convs = nn.ModuleList(ConvModule(c, out_channels, 1) for c in in_channels)
        self.fpn_convs = nn.ModuleList(
            ConvModule(out_channels, out_channels, 3, act_cfg=act_cfg) for _ in in_channels
        )
        self.downsample_convs = nn.ModuleList(
            ConvModule(out_channels, out_channels, 3, stride=2, act_cfg=act_cfg)
            for _ in in_channels[1:]
        )
        self.pafpn_convs = nn.ModuleList(
            ConvModule(out_channels, out_channels, 3, act_cfg=act_cfg) for _ in in_channels[1:]
        )

    def forward(self, inputs):
        laterals = [conv(x) for conv, x in zip(self.lateral_convs, inputs)]
        for i in range(self.num_levels - 1, 0, -1):
            up = F.interpolate(laterals[i], size=laterals[i - 1].shape[2:], mode="nearest")
            laterals[i - 1] = laterals[i - 1] + up

        inter_outs = [conv(x) for conv, x in zip(self.fpn_convs, laterals)]
        for i in range(self.num_levels - 1):
            inter_outs[i + 1] += self.downsample_convs[i](inter_outs[i])  # <- GS401

        outs = [inter_outs[0]]
        outs.extend(self.pafpn_convs[i - 1](inter_outs[i]) for i in range(1, self.num_levels))
        return tuple(outs)
