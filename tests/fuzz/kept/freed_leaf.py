# gradscope check: a segmentation fault
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
x = torch.randn(5, requires_grad=True)
y = x * 2
x.untyped_storage().resize_(0)
