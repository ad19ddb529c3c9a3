import torch
from torch import nn


def binarise(x, threshold=None):
    if threshold is None:
        return x
    return torch.tensor((x > threshold).to(x.dtype), requires_grad=True)  # <- GS303


def f_score(pred, target, beta=1.0, eps=1e-7, threshold=None):
    pred = binarise(pred, threshold)
    tp = (target * pred).sum()
    fp = pred.sum() - tp
    fn = target.sum() - tp
    return ((1 + beta**2) * tp + eps) / ((1 + beta**2) * tp + beta**2 * fn + fp + eps)


class DiceLoss(nn.Module):
    def __init__(self, beta=1.0, eps=1.0, threshold=None):
        super().__init__()
        self.beta, self.eps, self.threshold = beta, eps, threshold

    def forward(self, logits, target):
        probs = torch.sigmoid(logits)
        return 1.0 - f_score(probs, target, self.beta, self.eps, self.threshold)


class IoU:
    name = "iou"

    def __init__(self, threshold=0.5):
        self.threshold = threshold

    @torch.no_grad()
    def __call__(self, logits, target):
        pred = torch.sigmoid(logits) > self.threshold
        inter = (pred & target.bool()).sum()
        union = (pred | target.bool()).sum().clamp(min=1)
        return (inter / union).item()
