# gradscope trace: a weak reference stays alive, a count is 3 for 2
x = torch.randn(3, requires_grad=True)
reference = weakref.ref(x * 3)
y = x * 2
count = sys.getrefcount(y)
