# gradscope trace: stdout: '-closed' (seed 218727-808)
def f(t):
    try:
        while True:
            t = yield t * 2
    finally:
        print("closed")
w = torch.ones(3, requires_grad=True)
n = f(w)
h = next(n)
h.sum().backward()
