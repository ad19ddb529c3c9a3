import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RoundPass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


def scale_gradient(x, factor):
    return (x - x * factor).detach() + x * factor


class LearnedStepQuantizer(nn.Module):
    """Fake quantisation with a learned step size."""

    def __init__(self, bits, signed=True):
        super().__init__()
        self.q_min = -(2 ** (bits - 1)) if signed else 0
        self.q_max = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
        self.step_size = None

    def forward(self, x):
        if self.step_size is None:
            start = 2 * x.detach().abs().mean() / math.sqrt(self.q_max)
            self.step_size = nn.Parameter(start)  # <~ GS307
        grad_scale = 1.0 / math.sqrt(x.numel() * self.q_max)
        step = scale_gradient(self.step_size, grad_scale)
        levels = RoundPass.apply((x / step).clamp(self.q_min, self.q_max))
        return levels * step


class QuantConv2d(nn.Conv2d):
    def __init__(self, *args, bits=4, **kwargs):
        super().__init__(*args, **kwargs)
        self.weight_quantizer = LearnedStepQuantizer(bits, signed=True)
        self.input_quantizer = LearnedStepQuantizer(bits, signed=False)

    def forward(self, x):
        weight = self.weight_quantizer(self.weight)
        x = self.input_quantizer(x)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding)
