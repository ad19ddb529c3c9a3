# gradscope check: the gradient of retain_grad is doubled
x = torch.randn(3, requires_grad=True)
y = x * 2
y.retain_grad()
y.sin().sum().backward()
