import torch
import torch.nn as nn


class BinActive(torch.autograd.Function):
    """Binarises the input activations and passes gradients inside [-1, 1]."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

        @staticmethod
        def backward(ctx, grad_output):  # <- GS000
            (x,) = ctx.saved_tensors
            grad_input = grad_output.clone()
            grad_input[x.ge(1)] = 0
            grad_input[x.le(-1)] = 0
            return grad_input


class BinConv2d(nn.Module):
    def __init__(self, cin, cout, kernel_size, padding=0):
        super().__init__()
        self.bn = nn.BatchNorm2d(cin, eps=1e-4, momentum=0.1)
        self.conv = nn.Conv2d(cin, cout, kernel_size, padding=padding)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.conv(BinActive.apply(self.bn(x))))


class BinLinear(nn.Module):
    def __init__(self, nin, nout):
        super().__init__()
        self.bn = nn.BatchNorm1d(nin, eps=1e-4, momentum=0.1)
        self.linear = nn.Linear(nin, nout)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.linear(BinActive.apply(self.bn(x))))
