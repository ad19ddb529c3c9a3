# gradscope backward --values: a traceback of our own
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
x = torch.ones(3, requires_grad=True)
y = x * 2
z = y + 1
y.untyped_storage().resize_(0)
z.sum().backward()
