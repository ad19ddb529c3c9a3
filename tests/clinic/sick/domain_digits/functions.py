import math

from torch.autograd import Function


class GradientFlip(Function):
    @staticmethod
    def forward(ctx, x, constant):
        ctx.constant = constant
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.constant, None  # <~ GS000


def adaptation_strength(progress, gamma):
    """Grows smoothly from zero to one with the training progress."""
    return 2.0 / (1.0 + math.exp(-gamma * progress)) - 1.0
