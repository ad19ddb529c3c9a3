# gradscope trace --root t: KeyError: <ViewBackward0 object>
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
class Sub(torch.Tensor):
    pass
t = torch.randn(3).as_subclass(Sub).requires_grad_()
(t * 2).sum().backward()
