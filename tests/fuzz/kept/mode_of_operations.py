# gradscope doctor --steps all --keep-going: the program's mode sees an operation of ours
from torch.utils._python_dispatch import TorchDispatchMode
class Mode(TorchDispatchMode):
    names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
with Mode():
    w = torch.ones(2, requires_grad=True)
    f = w - 0.1 * torch.autograd.grad(((w * 3) ** 2).sum(), w, create_graph=True)[0]
    (f**2).sum().backward(retain_graph=True)
print(Mode.names)
