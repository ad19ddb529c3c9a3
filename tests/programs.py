"""Programs that use one corner of torch each; watched, every one must do what it does alone.

What imports and seeds them is put around them by :func:`tests.fuzz.writer.telling`."""

from __future__ import annotations

PROGRAMS = {
    "custom function: several outputs, plain arguments, None gradients": """
class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, label):
        ctx.factor = factor
        return x * factor, x + 1, x.argmax()
    @staticmethod
    def backward(ctx, double, more, _index):
        return double * ctx.factor + more, None, None
x = torch.arange(3.0, requires_grad=True)
a, b, c = Split.apply(x, 3, "label")
loss = (a * b).sum()
loss.backward()
print(x.grad)
""",
    "custom function: setup_context": """
class Cube(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x):
        return x ** 3
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x ** 2 * g
x = torch.arange(3.0, requires_grad=True)
Cube.apply(x).sum().backward()
print(x.grad)
""",
    "custom function: changes its incoming gradient in place": """
class Rude(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        return g.mul_(2)
x = torch.arange(30.0, requires_grad=True)
y = x * 2
z = Rude.apply(y)
(z * z).sum().backward()
print(x.grad)
""",
    "custom function: once_differentiable and mark_dirty": """
from torch.autograd.function import once_differentiable
class AddOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g
x = torch.arange(3.0, requires_grad=True)
y = x * 2
y = AddOne.apply(y)
y.pow(2).sum().backward()
print(x.grad)
""",
    "checkpoints": """
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 4))
x = torch.randn(5, 4, requires_grad=True)
for is_reentrant in (True, True, False, False):
    h = checkpoint(net, x, use_reentrant=is_reentrant)
    loss = h.pow(2).mean()
    loss.backward()
    print(x.grad.sum().item(), [p.grad.norm().item() for p in net.parameters()], torch.rand(1))
""",
    "views and in-place": """
x = torch.arange(6.0, requires_grad=True)
y = x * 2
v = y.view(2, 3)
v[0] += 1
v[:, 1].mul_(3)
y[4] = x[0] * 5
w = v.t().contiguous()
w[0, 0] = 0
loss = (w * w).sum()
loss.backward()
print(x.grad)
""",
    "allow_unused and named inputs": """
a = torch.ones(2, requires_grad=True)
b = torch.ones(2, requires_grad=True)
c = a * 2
loss = (c * 3).sum()
print(torch.autograd.grad(loss, [a, b, c], allow_unused=True, retain_graph=True))
loss.backward(inputs=[a])
print(a.grad, b.grad)
""",
    "autograd.backward with several roots": """
x = torch.arange(3.0, requires_grad=True)
y, z = x * 2, x * x
torch.autograd.backward([y, z, y.sum()], [torch.ones(3), torch.full((3,), 2.0), None])
print(x.grad)
""",
    "bf16 autocast": """
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=False)
for step in range(2):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(torch.ones(2, 4)).float().pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item())
""",
    "hooks of the program": """
x = torch.arange(3.0, requires_grad=True)
y = x * 2
y.register_hook(lambda g: g * 10)
x.register_hook(lambda g: g + 1)
seen = []
x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))
y.retain_grad()
y.sum().backward()
print(x.grad, y.grad, seen)
""",
    "optimizer hooks": """
net = nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer.register_step_pre_hook(lambda o, a, k: print("step"))
for step in range(2):
    optimizer.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
print(net.weight)
""",
    "torch.func": """
from torch.func import grad, vmap, jacrev, functional_call
w = torch.arange(3.0, requires_grad=True)
f = lambda v: (v * v).sum()
print(grad(f)(torch.ones(3)), vmap(f)(torch.ones(2, 3)), jacrev(lambda v: v * v)(torch.ones(2)))
net = torch.nn.Linear(3, 1, bias=False)
torch.nn.init.ones_(net.weight)
out = functional_call(net, {"weight": w[None]}, torch.ones(2, 3))
(out.sum() + vmap(lambda v: v @ w)(torch.ones(2, 3)).sum()).backward()
print(w.grad)
""",
    "many threads at once": """
from concurrent.futures import ThreadPoolExecutor
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, g):
        return 2 * g
nets = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(5)]
together = threading.Barrier(5)
def train(number):
    together.wait()
    for step in range(1, 6):
        Double.apply(nets[number](torch.full((2, 4), float(step)))).pow(2).mean().backward()
    return nets[number][0].weight.grad
with ThreadPoolExecutor(4) as pool:
    others = [pool.submit(train, number) for number in range(4)]
    print(train(4))
    print(*(other.result() for other in others))
""",
    "the program catches the error": """
x = torch.ones(3, requires_grad=True)
y = (x * x).sum()
y.backward()
try:
    y.backward()
except RuntimeError as error:
    print(str(error)[:60])
(x * 2).sum().backward()
print(x.grad)
""",
    "gradient edges": """
from torch.autograd.graph import get_gradient_edge
x = torch.ones(3, requires_grad=True)
y = x * 2
z = (y * y).sum()
print(torch.autograd.grad(get_gradient_edge(z), [get_gradient_edge(y)], torch.tensor(1.0)))
loss = (x * 3).sum()
loss.backward()
""",
    "compile, without its own compiler": """
x = torch.ones(3, requires_grad=True)
for backend in ("eager", "aot_eager"):
    compiled = torch.compile(lambda x: torch.sin(x) * 2, backend=backend)
    compiled(x).sum().backward()
    print(x.grad)
""",
    "DataLoader workers": """
from torch.utils.data import DataLoader
loader = DataLoader(torch.arange(8.0), batch_size=4, num_workers=1)
w = torch.ones((), requires_grad=True)
for batch in loader:
    (batch * w).sum().backward()
print(w.grad)
""",
}
