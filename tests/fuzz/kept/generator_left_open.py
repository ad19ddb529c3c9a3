# gradscope trace --run-on: stdout: +closed, where torch keeps the traceback for ever (seed 6ae10a)
def hook(g):
    raise KeyError("from the hook")
def f(t):
    try:
        while True:
            t = yield t * 2
    finally:
        print("closed")
w = torch.ones(3, requires_grad=True)
n = f(w)
h = next(n)
z = n.send(h)
z.register_hook(hook)
z.sum().backward()
