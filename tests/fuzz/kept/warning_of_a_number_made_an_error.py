# gradscope -W error doctor --steps all --keep-going: message: 'Converting a tensor with requires_grad=True to a scalar'
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
w = torch.tensor(3.0, requires_grad=True)
(w * w).backward()
tell(globals())
