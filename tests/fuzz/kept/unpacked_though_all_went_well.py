# gradscope doctor --steps all --keep-going: unpack is called twice more
x = torch.randn(3, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (print("unpack"), t)[1]):
    y = x * x
with torch.autograd.graph.allow_mutation_on_saved_tensors():
    y.mul_(1)
    z = y * 1
    z.add_(1)
    z.sum().backward()
