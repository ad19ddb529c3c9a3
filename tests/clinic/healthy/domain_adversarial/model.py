import math

import torch
import torch.nn as nn


class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DANN(nn.Module):
    def __init__(self, in_dim=10, feat_dim=32, n_classes=3):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(in_dim, 48), nn.ReLU(), nn.Linear(48, feat_dim), nn.ReLU()
        )
        self.classifier = nn.Linear(feat_dim, n_classes)
        self.domain = nn.Sequential(nn.Linear(feat_dim, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x, strength):
        f = self.features(x)
        return self.classifier(f), self.domain(ReverseGradient.apply(f, strength)).squeeze(1)


def ramp(progress, peak):
    """0 at the start, close to `peak` at the end."""
    return peak * (2 / (1 + math.exp(-10 * progress)) - 1)
