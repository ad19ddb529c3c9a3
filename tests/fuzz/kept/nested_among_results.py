# gradscope memory --call 2: status: '0 became 4' (seed campaign-a-8)
import torch
a1 = b2 = torch.randn(3, requires_grad=True)
n6 = torch.nested.as_nested_tensor([a1.float().reshape(-1)[:1].expand(2), torch.randn(3)])
z7 = torch.randn(20, dtype=torch.complex64, requires_grad=True)
y8 = z7.abs()
