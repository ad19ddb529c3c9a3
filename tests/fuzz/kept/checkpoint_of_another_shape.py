# gradscope doctor --steps all --keep-going: the checkpointed function runs twice more
calls = [0]
def f(t):
    calls[0] += 1
    return t.sin().cos() if calls[0] == 1 else t.sin()
x = torch.randn(3, requires_grad=True)
try:
    checkpoint(f, x * 2, use_reentrant=False).sum().backward()
except Exception as error:
    print(type(error).__name__)
print(calls)
