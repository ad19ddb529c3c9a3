# gradscope explain --call 2 --gradient ones: stdout: '+l16: Tensor torch.float64 cpu torch.strided v0 True [...]' (seed campaign-f-1364)
g2 = torch.Generator().manual_seed(3)
a3 = torch.randn(3, generator=g2).requires_grad_()
n4 = torch.nested.nested_tensor([torch.randn(2), torch.randn(3)], requires_grad=True)
torch.nested.to_padded_tensor(n4, 0.0).sum().backward()
k10 = threading.local()
k10.t = a3 * 2
y11 = k10.t
a14 = torch.tensor(-1.25, requires_grad=True)
a15 = torch.randn(3, 2, requires_grad=True)
l16 = sum(t.abs().double().sum() for t in (a14, y11, a14, a15))
l16.backward(retain_graph=True)
