# gradscope explain: RuntimeError: Output 0 of UnbindBackward0 is a view and its base ... modified
x = torch.randn(5, requires_grad=True)
y, *rest = x.reshape(-1)
with torch.no_grad():
    x.add_(0.5)
z = x * 2
