# gradscope trace: AttributeError: 'Linear' object has no attribute '_modules'
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
from torch import nn
import copy
import torch.nn.utils.prune
net = nn.Linear(3, 3)
torch.nn.utils.prune.l1_unstructured(net, "weight", 2)
copy.deepcopy(net)
