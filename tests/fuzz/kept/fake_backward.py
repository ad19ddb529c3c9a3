# gradscope doctor --steps all --keep-going: DataDependentOutputException: aten._local_scalar_dense.default
with torch._subclasses.FakeTensorMode():
    t = torch.ones(20, requires_grad=True)
    (t * 2).sum().backward()
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
