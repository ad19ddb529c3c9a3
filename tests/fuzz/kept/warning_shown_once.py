# gradscope check --every-call: stderr: '+ new_node = root_const_gm.graph.get_attr(in_node.target)' (seed campaign-g-2855)
a1 = torch.randn(5, requires_grad=True)
a2 = torch.randn(20, dtype=torch.float64, requires_grad=True)
a3 = torch.randn(20, dtype=torch.float64, requires_grad=True)
y4 = a3 * 2
n5 = sys.getrefcount(y4)
net6 = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
y7 = copy.deepcopy(a3)
y8 = torch.func.grad(lambda t: (t ** 3).sum())(a3.float())
sys.settrace(None)
o11, f12 = torch.func.linearize(lambda t: torch.square((torch.square(t) * torch.square(t))), torch.ones(3))
s13 = f12(torch.ones(3))
y14 = (torch.square(a3) * torch.square(a3))
y15 = torch.func.vmap(lambda t: (t + 1))(y8.float().reshape(-1, 1))
m16 = a3.detach() > 0.5
y17 = torch.where(m16, a3.reshape(-1)[:1], 0.0)
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
