# gradscope memory: AttributeError: '_CachedForward' object has no attribute '__getattr__'
s = nn.Sequential(nn.Linear(3, 3), torch.jit.trace(nn.Linear(3, 2), torch.ones(1, 3)))
s(torch.ones(2, 3)).sum().backward()
