# gradscope -W error doctor --steps all --keep-going: stderr: '+NotImplementedError: Cannot copy out of meta tensor; [...]' (seed 155615-223)
a10 = torch.randn(5, 8, requires_grad=True)
class V18:
    def __init__(self, t):
        self.t = t
    def __mul__(self, other):
        return type(self)(self.t * other)
y19 = (V18(a10) * 2 * 3).t
with torch.device("meta"):
    torch.set_default_device("meta")
a25 = torch.randn(12)[3:7].requires_grad_()
(y19.abs().sum() + a25.abs().sum()).backward(retain_graph=True)
