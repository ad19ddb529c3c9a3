# gradscope backward --steps 3: report: "nodes: {'AddBackward0': 1, 'SumBackward0': 1, [...]" (seed campaign-b-121)
a1 = b2 = torch.randn(3, requires_grad=True)
z3 = torch.complex(a1.float().reshape(-1)[:3], a1.float().reshape(-1)[:3] * 2)
y4 = z3.reshape(-1)[:1] * a1.float().reshape(-1)[:2]
a7 = torch.randn(40, requires_grad=True)
o8 = torch.Tensor.backward
def f9(self, *args, **kwargs):
    return o8(self, *args, **kwargs)
torch.Tensor.backward = f9
(a7.abs() * 2).sum().backward(retain_graph=True)
torch.Tensor.backward = o8
(a7.abs().sum() + y4.abs().sum()).backward(retain_graph=True)
