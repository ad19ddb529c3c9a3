# gradscope backward --call 2: __torch_function__ is called for what we read
class Sub(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs or {})
x = torch.randn(3, requires_grad=True)
x.sum().backward()
t = torch.randn(3).as_subclass(Sub).requires_grad_()
y = (t * 2).sum()
y.backward()
print(Sub.seen)
