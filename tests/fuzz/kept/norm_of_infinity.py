# gradscope explain: explanation.steps[2].constants[0][1]: expected `float | str`, got `null`
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
x = torch.randn(4, requires_grad=True)
y = x.norm(float("inf"))
