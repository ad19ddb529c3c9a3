"""Robust FGSM on a detector: the old torchvision Normalize inside the attack loop."""

import torch
from torch import nn

torch.manual_seed(0)

MEAN, STD = [0.5] * 3, [0.25] * 3


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, tensor):
        for t, m, s in zip(tensor, self.mean, self.std, strict=False):
            t.sub_(m).div_(s)  # <- GS405
        return tensor


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, x):
        for step in self.steps:
            x = step(x)
        return x


detector = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2)).eval()
preprocess = Compose([lambda im: im.mul(1.0), Normalize(MEAN, STD)])


def robust_fgsm(image, label, eps=0.03, iterations=3, alpha=0.01):
    adv = image.clone().requires_grad_()
    for _ in range(iterations):
        logits = detector(preprocess(adv).unsqueeze(0))
        loss = nn.functional.cross_entropy(logits, torch.tensor([label]))
        loss.backward()
        adv = (adv + alpha * adv.grad.sign()).clamp(image - eps, image + eps)
        adv = adv.detach().requires_grad_()
    return adv


robust_fgsm(torch.rand(3, 8, 8), 1)
