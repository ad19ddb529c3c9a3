# gradscope doctor --steps all --keep-going: unpack is called twice more
x = torch.randn(3, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (print("unpack"), t)[1]):
    y = x * x
z = y * 1
loss = (z * z).sum()
z.mul_(2)
try:
    loss.backward()
except RuntimeError as error:
    print("stale")
