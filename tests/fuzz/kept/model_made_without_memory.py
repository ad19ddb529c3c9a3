# gradscope doctor --steps all --keep-going: status: '0 became 4'
with torch.device("meta"):
    print(torch.get_default_device())
    net = nn.Linear(4, 2)
net = net.to_empty(device="cpu")
nn.init.normal_(net.weight)
nn.init.zeros_(net.bias)
for step in range(12):
    loss = (net(torch.randn(3, 4)) - 1).pow(2).mean()
    net.zero_grad()
    loss.backward()
