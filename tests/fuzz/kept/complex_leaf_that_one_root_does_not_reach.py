# gradscope explain --jacobian: status: '0 became 4' (seed campaign-e-120)
a3 = b4 = torch.randn(3, requires_grad=True)
z5 = torch.tensor(1 + 2j, requires_grad=True)
torch.autograd.backward([b4.abs().sum(), z5.abs().mean()])
