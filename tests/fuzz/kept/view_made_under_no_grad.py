# gradscope backward: RuntimeError: A view was created in no_grad mode and its base ... modified
x = torch.randn(3, requires_grad=True)
buffer = torch.zeros(4)
with torch.no_grad():
    view = buffer[:2]
buffer.add_(x[:1])
(buffer * 2).sum().backward()
