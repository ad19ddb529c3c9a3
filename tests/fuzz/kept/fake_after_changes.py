# gradscope doctor --steps all --keep-going: stderr: '+ (((t24 / 4) * 0.1).exp().sin()).sum().backward()' (seed campaign-d-806)
r16 = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten())
y17 = r16(torch.randn(2, 1, 5, 5))
with torch._subclasses.FakeTensorMode():
    t24 = torch.ones(3, requires_grad=True)
    (((t24 / 4) * 0.1).exp().sin()).sum().backward()
