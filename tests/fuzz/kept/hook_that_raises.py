# gradscope backward --create-graph x: a traceback of our own
x = torch.randn(3, requires_grad=True)
y = x * 2
def hook(gradient):
    raise KeyError("from the hook")
y.register_hook(hook)
try:
    y.sin().sum().backward()
except KeyError as error:
    print("caught", error)
