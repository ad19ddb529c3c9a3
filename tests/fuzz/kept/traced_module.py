# gradscope memory: AttributeError: '_CachedForward' object has no attribute '__getattr__'
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
from torch import nn
s = nn.Sequential(nn.Linear(3, 3), torch.jit.trace(nn.Linear(3, 2), torch.ones(1, 3)))
s(torch.ones(2, 3)).sum().backward()
