import torch


class FakeQuant(torch.autograd.Function):
    """Uniform quantization of activations to [0, ceiling]."""

    @staticmethod
    def forward(ctx, x, ceiling, levels):
        ctx.save_for_backward(x, ceiling)
        step = ceiling / levels
        clipped = torch.minimum(x.clamp(min=0), ceiling)
        return torch.round(clipped / step) * step

    @staticmethod
    def backward(ctx, grad_output):
        x, ceiling = ctx.saved_tensors
        inside = (x >= 0) & (x <= ceiling)
        grad_input = torch.where(inside, torch.ones_like(x), torch.zeros_like(x))  # <- GS601
        return grad_input, None, None  # <~ GS601
