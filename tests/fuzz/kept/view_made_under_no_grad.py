# gradscope backward: RuntimeError: A view was created in no_grad mode and its base ... modified
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
x = torch.randn(3, requires_grad=True)
buffer = torch.zeros(4)
with torch.no_grad():
    view = buffer[:2]
buffer.add_(x[:1])
(buffer * 2).sum().backward()
