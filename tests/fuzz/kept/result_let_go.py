# gradscope trace: a weak reference stays alive, a count is 3 for 2
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
import sys
import weakref
x = torch.randn(3, requires_grad=True)
reference = weakref.ref(x * 3)
y = x * 2
count = sys.getrefcount(y)
