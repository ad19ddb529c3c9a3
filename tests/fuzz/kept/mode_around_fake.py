# gradscope doctor --steps all --keep-going --thorough: stdout: "+['aten.zeros.default', 'aten.lift_fresh.default', [...]" (seed campaign-c-447)
a2 = torch.randn(20, dtype=torch.float64, requires_grad=True)
class M10(torch.utils._python_dispatch.TorchDispatchMode):
    names = []
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
with M10():
    class M11(torch.utils._python_dispatch.TorchDispatchMode):
        names = []
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))
    with M11():
        y12 = torch.zeros(4, dtype=a2.dtype).index_add(0, torch.tensor([0]), a2.reshape(-1)[:1])
        with torch._subclasses.FakeTensorMode():
            t13 = torch.ones(3, requires_grad=True)
            y14 = t13.sin()
    print(M11.names)
print(M10.names)
