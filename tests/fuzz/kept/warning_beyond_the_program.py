# gradscope explain: stderr: '+ return callback(*args, **kwargs)' (seed campaign-g-4314)
a2 = torch.randn(40, requires_grad=True)
net4 = nn.Linear(3, 1)
net4.register_full_backward_pre_hook(lambda m, o: None)
try:
    y5 = net4(torch.randn(2, 3))
except Exception as error:
    pass
z8 = torch.complex(a2.float().reshape(-1)[:3], a2.float().reshape(-1)[:3] * 2)
torch.autograd.backward([z8 * 2, y5.abs().sum()], [torch.ones_like(z8), None])
