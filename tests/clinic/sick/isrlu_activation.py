"""An activation of one's own."""

import torch
from torch.autograd import Function


class ISRLU(Function):
    @staticmethod
    def forward(ctx, tensor, alpha=1.0):
        negatives = torch.min(tensor, 0 * tensor)
        nisr = torch.rsqrt(1.0 + alpha * (negatives**2))
        ctx.save_for_backward(nisr)
        return tensor * nisr

    @staticmethod
    def backward(ctx, _grad_out):
        (nisr,) = ctx.saved_tensors
        return nisr**3, None  # <~ GS601


isrlu = ISRLU.apply


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(6, 12)
        self.b = torch.nn.Linear(12, 1)

    def forward(self, x):
        return self.b(isrlu(self.a(x)))  # <- GS601


torch.manual_seed(0)
m = Model()
opt = torch.optim.SGD(m.parameters(), lr=0.01)
x, y = torch.randn(32, 6), torch.randn(32, 1)
for _i in range(3):
    loss = torch.nn.functional.mse_loss(m(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
