# gradscope doctor --steps all --keep-going: the program's mode sees what we read
class Mode(torch.overrides.TorchFunctionMode):
    names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
with Mode():
    p = torch.nn.Parameter(torch.randn(2, 3))
    y = x.reshape(-1)
print(Mode.names)
(y * 2).sum().backward()
