# gradscope backward: python's own error does not come
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
x = torch.randn(3, requires_grad=True)
y = x.sgn()
for step in range(3):
    (y * 2).sum().backward(retain_graph=True)
