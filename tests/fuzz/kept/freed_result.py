# gradscope backward --values: a traceback of our own
x = torch.ones(3, requires_grad=True)
y = x * 2
z = y + 1
y.untyped_storage().resize_(0)
z.sum().backward()
