# gradscope -W error api record: stdout: '+a2.grad: Tensor torch.float32 cpu torch.strided v1 [...]' (seed 125222-237)
a1 = torch.randn(4, 4, requires_grad=True)
a2 = torch.randn(5, requires_grad=True)
def f4(gradient):
    pass
a1.register_hook(f4)
(a2.abs().sum() + a2.abs().sum()).backward()
