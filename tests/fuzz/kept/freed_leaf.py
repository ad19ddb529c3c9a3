# gradscope check: a segmentation fault
x = torch.randn(5, requires_grad=True)
y = x * 2
x.untyped_storage().resize_(0)
