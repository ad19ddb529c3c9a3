# gradscope doctor --steps all --keep-going: status: '0 became 4' (seed 783320-517)
a2 = torch.randn(40, requires_grad=True)
f6 = torch.jit.trace(lambda t: (t / 4), torch.ones(3))
y7 = f6(a2.float().reshape(-1)[:1].expand(3))
y11 = torch.Tensor.mul(y7, 2)
for step in range(8):
    (y11 * (step + 1)).abs().sum().backward(retain_graph=True)
