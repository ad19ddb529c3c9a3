# gradscope check --root s: NotImplementedError: Could not run 'aten::view' with arguments from the 'SparseCPU' backend
import torch
from tests.fuzz.fingerprint import tell, tell_at_exit
tell_at_exit(globals())
s = torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (4,), requires_grad=True)
