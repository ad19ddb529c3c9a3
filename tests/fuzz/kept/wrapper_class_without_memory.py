# gradscope doctor --steps all --keep-going: status: '0 became 4' (seed campaign-d-1657)
a1 = torch.randn(5, requires_grad=True)
class S4(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrapped(t):
            return t.inner if isinstance(t, cls) else t
        out = func(*tree_map(unwrapped, args), **tree_map(unwrapped, kwargs or {}))
        return tree_map(lambda t: cls(t) if isinstance(t, torch.Tensor) else t, out)
t5 = S4(torch.arange(20.0)).requires_grad_()
y6 = torch.square(t5).sum()
y6.backward()
c7 = torch.empty(3)
with torch.no_grad():
    torch.mul(a1.reshape(-1)[:1].float(), torch.ones(3), out=c7)
y8 = a1.float().reshape(-1)[:1] * c7
y12 = t5.sin().sum()
y12.backward()
y22 = y8.sum()
l30 = y8.abs().double().mean() + y22.abs().double().sum()
l30.backward(retain_graph=True)
