# gradscope trace --saved: the checkpointed function runs once more
def f(t):
    print("run")
    return t * t
x = torch.ones(3, requires_grad=True)
y = checkpoint(f, x * 2, use_reentrant=False)
