# gradscope backward: AttributeError: '_CachedForward' object has no attribute '__getattr__'
s = torch.jit.script(nn.Linear(3, 2))
s(torch.ones(2, 3)).sum().backward()
