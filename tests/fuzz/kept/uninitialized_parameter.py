# gradscope memory: ValueError: Attempted to use an uninitialized parameter
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
from torch import nn
lazy = nn.LazyLinear(3)
x = torch.randn(3, requires_grad=True)
y = x * 2
