# gradscope backward: graph.leaves[0].tensor: shape [2, -1] has a negative size
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
n = torch.nested.nested_tensor([torch.randn(2), torch.randn(3)], requires_grad=True)
torch.nested.to_padded_tensor(n * 2, 0.0).sum().backward()
