# gradscope backward --values --saved --histograms: stdout: "+['aten.view.default', 'aten.slice.Tensor', [...]" (seed campaign-d-844)
a3 = nn.Parameter(torch.randn(18))
r4 = nn.MultiheadAttention(4, 2, batch_first=True)
y5 = r4(*[torch.randn(1, 3, 4)] * 3)[0]
class F6(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 3
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = 3
    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor
y7 = F6.apply(a3)
class M8(torch.utils._python_dispatch.TorchDispatchMode):
    names = []
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
with M8():
    try:
        (y5.reshape(-1)[:1].expand(2) * 2).backward(retain_graph=True)
    except RuntimeError as error:
        pass
    n9 = torch.autograd.graph.get_gradient_edge(a3).node
    l11 = a3.abs().double().mean() + y7.abs().double().sum()
    l11.backward(retain_graph=True)
print(M8.names)
