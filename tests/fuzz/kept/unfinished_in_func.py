# gradscope backward --values --saved --histograms: stderr: "+AttributeError: type object 'F16' has no attribute [...]" (seed campaign-a-29)
class F16(torch.autograd.Function):
    @staticmethod
    def setup_context(ctx, inputs, output):
        pass
s17 = torch.func.grad(lambda t: F16.apply(t).sum())(torch.randn(3))
