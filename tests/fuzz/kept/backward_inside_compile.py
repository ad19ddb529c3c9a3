# gradscope backward --call 2: stderr: '+ torch._dynamo.utils.warn_once(explanation + "\\n" + [...]' (seed campaign-d-1409)
net5 = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 3))
def f6(t):
    loss = net5(t).pow(2).sum()
    loss.backward()
    return loss
y7 = torch.compile(f6, backend="eager")(torch.randn(2, 3))
