import torch
import torch.nn as nn
import torch.nn.functional as F


class UpSample(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv_a = nn.Conv2d(c_in, c_out, 3, padding=1)
        self.conv_b = nn.Conv2d(c_out, c_out, 3, padding=1)

    def forward(self, x, skip):
        x = F.interpolate(x, size=skip.shape[2:], mode="bilinear", align_corners=True)
        x = self.conv_a(torch.cat([x, skip], dim=1))
        return F.leaky_relu(self.conv_b(x), 0.2)


class DenseDepth(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.enc0 = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU())
        self.enc1 = nn.Sequential(nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU())
        self.up = UpSample(3 * width, width)
        self.out = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x):
        x0 = self.enc0(x)
        return self.out(self.up(self.enc1(x0), x0))


def ssim(a, b, c1, c2):
    mu_a, mu_b = F.avg_pool2d(a, 3, 1), F.avg_pool2d(b, 3, 1)
    var_a = F.avg_pool2d(a * a, 3, 1) - mu_a**2
    var_b = F.avg_pool2d(b * b, 3, 1) - mu_b**2
    cov = F.avg_pool2d(a * b, 3, 1) - mu_a * mu_b
    top = (2 * mu_a * mu_b + c1) * (2 * cov + c2)
    return top / ((mu_a**2 + mu_b**2 + c1) * (var_a + var_b + c2))


def depth_loss(prediction, target, value_range=10.0, weight=0.1):
    l_depth = (prediction - target).abs().mean()
    constants = (0.01 * value_range) ** 2, (0.03 * value_range) ** 2
    l_ssim = ((1 - ssim(prediction, target, *constants)) * 0.5).mean()
    return l_ssim + weight * l_depth
