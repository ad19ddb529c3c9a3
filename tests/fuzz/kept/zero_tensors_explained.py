# gradscope explain --jacobian: tolist() shouldn't be called on a tensor with unallocated storage
x = torch.randn(1, 3, requires_grad=True)
y = x.sgn()
(y * 2).sum().backward(retain_graph=True)
