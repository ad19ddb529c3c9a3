# gradscope trace: RuntimeError: Cannot swap t1 because it has weakref associated with it
p, q = torch.randn(3, requires_grad=True), torch.ones(3, requires_grad=True)
torch.utils.swap_tensors(p, q)
y = p * 2
y.sum().backward()
del y
torch.utils.swap_tensors(p, q)
