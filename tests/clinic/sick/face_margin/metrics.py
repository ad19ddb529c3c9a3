import math

import torch
import torch.nn.functional as F
from torch import nn


class ArcMargin(nn.Module):
    """Adds an angular margin to the logit of the true class."""

    def __init__(self, features, classes, scale, margin):
        super().__init__()
        self.scale = scale
        self.cos_m, self.sin_m = math.cos(margin), math.sin(margin)
        self.threshold = math.cos(math.pi - margin)
        self.penalty = math.sin(math.pi - margin) * margin
        self.weight = nn.Parameter(torch.empty(classes, features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, embedding, label=None):
        cosine = F.linear(F.normalize(embedding), F.normalize(self.weight))
        if label is None:
            return self.scale * cosine
        sine = (1.0 - cosine.pow(2)).clamp(min=1e-6).sqrt()
        phi = cosine * self.cos_m - sine * self.sin_m
        phi = torch.where(cosine > self.threshold, phi, cosine - self.penalty)
        one_hot = F.one_hot(label, cosine.shape[1]).to(cosine)
        return self.scale * (one_hot * phi + (1 - one_hot) * cosine)
