# gradscope check: the gradient of retain_grad is doubled
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
x = torch.randn(3, requires_grad=True)
y = x * 2
y.retain_grad()
y.sin().sum().backward()
