# gradscope backward: python's own error does not come
x = torch.randn(3, requires_grad=True)
y = x.sgn()
for step in range(3):
    (y * 2).sum().backward(retain_graph=True)
