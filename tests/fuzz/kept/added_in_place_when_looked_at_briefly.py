# gradscope doctor --steps all --keep-going: stdout: '+s7.parametrizations.weight.original.grad: Tensor [...]' (seed campaign-d-1747)
net6 = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))
opt18 = torch.optim.SGD(net6.parameters(), lr=0.05)
for step in range(7):
    opt18.zero_grad()
    l19 = net6(torch.randn(2, 3)).pow(2).mean()
    l19.backward()
