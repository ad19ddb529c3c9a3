# gradscope check --all: stdout: '+importers 4 filters 12' (seed campaign-c-115)
import random
import torch
import os
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
torch.manual_seed(44)
random.seed(44)
a1 = torch.tensor([0.0, -0.0, 1.0, -2.0], requires_grad=True)
a2 = torch.randn(3, 2, requires_grad=True)
a3 = torch.randn(1, 3, requires_grad=True)
a4 = torch.tensor(0.5, requires_grad=True)
t5 = torch.ones(20, device="meta", requires_grad=True)
os.chdir(os.getcwd())
l6 = a4.abs().double().mean() + a2.abs().double().sum()
l6.backward(retain_graph=True)
s7 = torch.autograd.functional.vhp(lambda t: (t ** 3).sum(), torch.ones(2), torch.ones(2))
tell(globals())
