# gradscope backward: AttributeError: '_CachedForward' object has no attribute '__getattr__'
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
from torch import nn
s = torch.jit.script(nn.Linear(3, 2))
s(torch.ones(2, 3)).sum().backward()
