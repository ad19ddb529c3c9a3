# gradscope backward: RecursionError
sys.setrecursionlimit(1020)
x = torch.randn(3, requires_grad=True)
def deep(t, n):
    return t if not n else deep(t * 2, n - 1)
deep(x, 950).sum().backward()
