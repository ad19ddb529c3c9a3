# gradscope backward --create-graph x: a traceback of our own
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
x = torch.randn(3, requires_grad=True)
y = x * 2
def hook(gradient):
    raise KeyError("from the hook")
y.register_hook(hook)
try:
    y.sin().sum().backward()
except KeyError as error:
    print("caught", error)
