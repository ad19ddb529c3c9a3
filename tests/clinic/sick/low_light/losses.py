import torch
import torch.nn.functional as F
from torch import nn


class CombinedLoss(nn.Module):
    """Smooth L1, brightness histogram, colour and structure, weighted."""

    def __init__(self, weights, bins=32):
        super().__init__()
        self.weights = weights
        self.bins = bins
        window = torch.ones(1, 1, 5, 5) / 25
        self.register_buffer("window", window)

    def color_loss(self, true, pred):
        return (true.mean(dim=(2, 3)) - pred.mean(dim=(2, 3))).abs().mean()

    def histogram(self, image):
        counts = torch.histc(image, bins=self.bins, min=0.0, max=1.0)  # <- GS303
        return counts / counts.sum()

    def histogram_loss(self, true, pred):
        return (self.histogram(true) - self.histogram(pred)).abs().mean()

    def structure_loss(self, true, pred):
        true, pred = true.mean(1, keepdim=True), pred.mean(1, keepdim=True)
        mu_t, mu_p = F.conv2d(true, self.window), F.conv2d(pred, self.window)
        var_t = F.conv2d(true**2, self.window) - mu_t**2
        var_p = F.conv2d(pred**2, self.window) - mu_p**2
        cov = F.conv2d(true * pred, self.window) - mu_t * mu_p
        top = (2 * mu_t * mu_p + 1e-4) * (2 * cov + 9e-4)
        return 1 - (top / ((mu_t**2 + mu_p**2 + 1e-4) * (var_t + var_p + 9e-4))).mean()

    def forward(self, true, pred):
        w = self.weights
        return (
            w["smooth"] * F.smooth_l1_loss(pred, true)
            + w["hist"] * self.histogram_loss(true, pred)
            + w["color"] * self.color_loss(true, pred)
            + w["structure"] * self.structure_loss(true, pred)
        )
