# gradscope doctor --steps all --keep-going: RuntimeError: _apply(): Couldn't swap Linear.weight
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
from torch import nn
torch.__future__.set_swap_module_params_on_conversion(True)
net = nn.Linear(3, 1).double()
net(torch.ones(1, 3, dtype=torch.float64)).sum().backward()
