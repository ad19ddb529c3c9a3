# gradscope check --every-call: stderr: '+ new_node = root_const_gm.graph.get_attr(in_node.target)' (seed campaign-g-2855)
sys.settrace(None)
o11, f12 = torch.func.linearize(lambda t: torch.square((torch.square(t) * torch.square(t))), torch.ones(3))
s13 = f12(torch.ones(3))
a18 = nn.Parameter(torch.randn(2, 3))
y19 = a18.float() * 1
z20 = (y19 * y19).sum()
y19.mul_(2)
try:
    z20.backward(retain_graph=True)
except RuntimeError as error:
    print("stale", str(error)[:60])
o25, f26 = torch.func.linearize(lambda t: torch.square((t / 4)), torch.ones(3))
s27 = f26(torch.ones(3))
with torch._subclasses.FakeTensorMode():
    t28 = torch.ones(3, requires_grad=True)
    y29 = (3 - t28)
