# gradscope check: ValueError: in backward
x = torch.randn(2, 3, requires_grad=True)
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("in backward")
try:
    F.apply(x).abs().sum().backward()
except ValueError as error:
    print("caught", error)
