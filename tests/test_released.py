"""Tensors whose memory the program has given back: no command reads them, and each says so."""

from __future__ import annotations

import json
import math

import pytest

from tests.conftest import python_says
from tests.fuzz.alike import alike
from tests.fuzz.files import in_turn
from tests.fuzz.trial import DOCTOR
from tests.fuzz.writer import telling
from tests.looking import Session, is_close, leaf_named, new_gradient, node_of

SIZES = {"3 elements": (3, 0), "10,000 elements": (10_000, 0), "a part of 10,000": (10_000, 40)}
"""How many elements there are, and how many bytes of them stay."""

COMMANDS = (
    ("trace", "--values", "--saved"),
    ("backward", "--values", "--saved", "--histograms"),
    ("explain", "--all"),
    ("check",),
    ("memory",),
    ("depends", "--on", "x"),
    (*DOCTOR, "--thorough", "--check"),
)

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
def give_back(t, to={left}): t.untyped_storage().resize_(to)
def bring_back(t, numbers):
    t.untyped_storage().resize_(t.storage_offset() * t.itemsize + t.nbytes)
    with torch.no_grad(): t.data.copy_(numbers)
x = torch.ones(3, requires_grad=True)
"""

WHAT = {
    "a leaf": """
big = torch.zeros({n}, requires_grad=True)
y = (x * x).sum() + big.sum()
give_back(big)
y.backward()
""",
    "a leaf that is a view, and a parameter": """
base = torch.zeros(2 * {n})
big = base[{n}:].view(1, -1).t().requires_grad_()
layer = nn.Module(); layer.w = nn.Parameter(torch.zeros({n}))
y = (x * x).sum() + big.sum() + layer.w.sum()
give_back(base); give_back(layer.w)
y.backward()
""",
    "saved tensors, off the path": """
v = torch.ones({n}, requires_grad=True); w = torch.ones({n}, requires_grad=True)
h = v * w
y = h.sigmoid().sum() + torch.softmax(h, 0).sum() + nn.functional.layer_norm(h, ({n},), w).sum()
y = y + (x * x).sum()
give_back(v); give_back(h)
y.backward(inputs=[x])
""",
    "the bounds of a clamp": """
v = torch.ones({n}, requires_grad=True); low = torch.zeros({n}); high = torch.ones({n})
y = v.clamp(low, high).sum() + (x * x).sum()
give_back(low); give_back(high)
y.backward(inputs=[x])
""",
    "a saved tensor that a hook brings back": """
w = torch.ones({n}, requires_grad=True)
h = w * 3
y = (h * h).sum() + (x * x).sum()
kept = h.detach().clone()
give_back(h)
y.register_hook(lambda g: bring_back(h, kept))
y.backward()
""",
    "a result and a constant": """
w = torch.ones({n}, requires_grad=True); constant = torch.full(({n},), 2.0)
h = w + constant
y = (h + w).sum() + (x * x).sum()
give_back(h); give_back(constant)
y.backward()
""",
    "the root": """
w = torch.ones({n}, requires_grad=True)
y = w + 1
give_back(y)
y.backward(torch.ones({n}))
z = (x * x).sum()
give_back(z, 0)
z.backward()
""",
    "buffers": """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones({n})); self.norm = nn.BatchNorm1d({n})
        self.register_buffer("b", torch.ones({n}))
        self.register_buffer("nan", torch.full(({n},), float("nan")))
    def forward(self, x):
        return self.norm((x + self.w + self.b).expand(4, -1) * torch.arange(4.0)[:, None])
layer = Layer()
y = layer(torch.ones({n})).pow(2).sum() + (x * x).sum()
for buffer in (layer.b, layer.nan, layer.norm.running_mean): give_back(buffer)
y.backward()
""",
    "`.grad` after the call": """
w = torch.ones({n}, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda p: give_back(p.grad))
for step in range(9):
    (w.sum() * 2 + (x * x).sum()).backward()
    w.grad = None
""",
    "`.grad` before the call": """
w = torch.ones({n}, requires_grad=True)
w.grad = torch.ones({n})
for step in range(9):
    give_back(w.grad)
    y = w.sum() * 2 + (x * x).sum()
    y.register_hook(lambda g: bring_back(w.grad, torch.zeros({n})))
    y.backward()
""",
    "a gradient on its way": """
def freed(g):
    g = g.clone(); give_back(g); return g
for step in range(9):
    w = torch.ones({n}, requires_grad=True)
    w.register_hook(freed)
    ((w * 2 + 1).sum() + (x * x).sum()).backward()
    del w
""",
    "the gradient that is fed in": """
class Ones(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 1
    @staticmethod
    def backward(ctx, g): return torch.ones({n})
w = torch.ones({n}, requires_grad=True)
for step in range(3):
    g, y = torch.ones({n}), Ones.apply(w)
    give_back(g)
    y.backward(g)
""",
    "a tensor on ctx": """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.s = s
        return x * s
    @staticmethod
    def backward(ctx, g): return g * ctx.s, None
w = torch.ones({n}, requires_grad=True); s = torch.full(({n},), 3.0)
for step in range(3):
    y = (Scale.apply(w, s) + 1).sum() + (x * x).sum()
    give_back(s)
    y.register_hook(lambda g: bring_back(s, 3.0 * torch.ones({n})))
    y.backward()
""",
    "a tensor that a Function takes from around it": """
s = torch.full(({n},), 3.0)
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * s
    @staticmethod
    def backward(ctx, g): return g * s
w = torch.ones({n}, requires_grad=True)
for step in range(3):
    y = (Scale.apply(w) + 1).sum() + (x * x).sum()
    give_back(s)
    y.register_hook(lambda g: bring_back(s, 3.0 * torch.ones({n})))
    y.backward()
""",
    "what a Function itself gives back": """
s = torch.full(({n},), 3.0)
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * s
    @staticmethod
    def backward(ctx, g):
        out = g * s / 0.0
        give_back(s)
        return out
for step in range(3):
    bring_back(s, 3.0 * torch.ones({n}))
    w = torch.ones({n}, requires_grad=True)
    Scale.apply(w * 2).sum().backward()
    print(w.grad.sum())
""",
    "the factor of an in-place change of a view": """
w = torch.ones({n}, requires_grad=True); s = torch.full(({n},), 3.0)
h = (w * 2).expand(2, -1).contiguous()
h[0].mul_(s)
y = (h + 1).sum() + (x * x).sum()
give_back(s)
y.register_hook(lambda g: bring_back(s, 3.0 * torch.ones({n})))
y.backward()
""",
    "a parameter after its step": """
w = nn.Parameter(torch.randn({n}).to(torch.bfloat16)); kept = w.detach().clone()
optimizer = torch.optim.SGD([w], lr=0.1)
optimizer.register_step_pre_hook(lambda *_: bring_back(w, kept))
def after(*_):
    kept.copy_(w.data); give_back(w)
optimizer.register_step_post_hook(after)
for step in range(9):
    bring_back(w, kept)
    (w.float().pow(2).sum() + (x * x).sum()).backward()
    optimizer.step(); optimizer.zero_grad()
""",
    "what a class of the program wraps": """
from torch.utils._pytree import tree_map
class Wrap(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
    def __init__(self, inner): self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = lambda t: t.inner if isinstance(t, Wrap) else t
        out = func(*tree_map(inner, args), **tree_map(inner, kwargs or {{}}))
        return tree_map(lambda t: Wrap(t) if isinstance(t, torch.Tensor) else t, out)
w = Wrap(torch.ones({n})).requires_grad_()
w.register_post_accumulate_grad_hook(lambda p: give_back(p.grad.inner))
for step in range(3):
    y = (w + 1).sum()
    give_back(w.inner)
    y.backward()
    (x * x).sum().backward()
    w.grad = None
    bring_back(w.inner, torch.ones({n}))
""",
    "parts of sparse and of nested gradients": """
e = nn.Embedding({n}, 4, sparse=True)
e.weight.register_post_accumulate_grad_hook(lambda p: give_back(p.grad._values()))
rows = [torch.ones(2, {n}), torch.ones(3, {n})]
w = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda p: give_back(p.grad.values()))
for step in range(3):
    (e(torch.arange({n})).sum() + (x * x).sum()).backward()
    torch.nested.to_padded_tensor(w * 2, 0.0).sum().backward()
    e.weight.grad = w.grad = None
""",
}

SHARDED = """
import torch
from torch import nn
torch.manual_seed(0)
class Layer(nn.Module):
    # As FSDP does: the parameter is there in forward and in backward, and nowhere between.
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn({n}))
        self.shard = nn.Parameter(self.w.detach().clone())
        self.bytes = self.w.untyped_storage().nbytes()
        self.register_forward_pre_hook(lambda *_: self.gather())
        self.register_forward_hook(self.after)
        self.w.register_post_accumulate_grad_hook(self.reduce)
        self.free()
    def gather(self):
        self.w.untyped_storage().resize_(self.bytes)
        with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(self.w):
            self.w.copy_(self.shard)
    def free(self):
        self.w.untyped_storage().resize_({left})
    def after(self, module, inputs, out):
        self.free()
        out.register_hook(lambda g: self.gather())
    def reduce(self, w):
        self.shard.grad = w.grad.clone()
        w.grad.untyped_storage().resize_(0)
        w.grad = None
        self.free()
    def forward(self, x):
        return (x * self.w).tanh()
net = nn.Sequential(Layer(), Layer(), Layer())
optimizer = torch.optim.Adam([layer.shard for layer in net], lr=0.1)
x = torch.randn({n})
for step in range(9):
    optimizer.zero_grad()
    net(x).pow(2).sum().backward()
    optimizer.step()
    print([layer.shard.sum().item() for layer in net])
"""

PROGRAMS = {**{what: HEAD + then for what, then in WHAT.items()}, "sharded parameters": SHARDED}


def _filled(text: str, size: str) -> str:
    n, left = SIZES[size]
    return text.format(n=n, left=left)


IN_PART = {
    *("a leaf", "a leaf that is a view, and a parameter", "saved tensors, off the path"),
    *("`.grad` after the call", "`.grad` before the call", "a gradient on its way"),
    *("what a class of the program wraps", "sharded parameters"),
}
"""Programs of which a part of the memory may stay: each way of asking."""

ASKED = {
    f"{what}: {size}": (telling(_filled(text, size)), COMMANDS)
    for what, text in PROGRAMS.items()
    for size, (_, left) in SIZES.items()
    if not left or what in IN_PART
}


test_the_program_runs_as_under_python = alike(
    in_turn({name: asked for name, asked in ASKED.items() if name.endswith(": 10,000 elements")}),
    ASKED,
)

# ---------------------------------------------------------------- what is said of it


@pytest.mark.parametrize("size", SIZES)
def test_a_leaf_is_shown_without_its_values(size: str, process: Session) -> None:
    report = process.look(_filled(HEAD + WHAT["a leaf"], size))
    big = leaf_named(report, "big")
    assert (big.tensor.released, big.tensor.values, big.norm) == (True, None, None)
    assert not leaf_named(report, "x").tensor.released
    assert new_gradient(report, "x").values == (2, 2, 2)
    assert new_gradient(report, "big").norm == pytest.approx(SIZES[size][0] ** 0.5)
    shown = process.cli("show", "report.json", "--values", "--width", "140").out
    row = next(line for line in shown.splitlines() if "● big" in line)
    assert f"[{SIZES[size][0]}]" in row and "its memory is not there" in row
    other = process.cli("diff", "report.json", "report.json")
    assert (other.status, other.err) == (0, "")


def test_what_is_given_back_during_the_call_that_makes_it_has_no_values(process: Session) -> None:
    report = process.look("""
        import torch

        def packed(tensor):
            kept = tensor.detach().clone()
            tensor.untyped_storage().resize_(4)
            return kept

        x = torch.arange(8.0, requires_grad=True)
        h = x * 1.5
        with torch.autograd.graph.saved_tensors_hooks(packed, lambda kept: kept):
            y = h.exp()
        y.backward(torch.ones(8))
        """)
    result, before = (node_of(report, text).outputs[0] for text in ("h.exp()", "x * 1.5"))
    assert result is not None and before is not None
    assert result.values is None
    assert before.values == tuple(1.5 * number for number in range(8))
    expected = [1.5 * math.exp(1.5 * number) for number in range(8)]
    assert is_close(new_gradient(report, "x"), expected)


def _said(session: Session, what: str, *arguments: str) -> str:
    """What a command prints and says of such a program of three elements, in one line."""
    path = str(session.write(_filled(HEAD + WHAT[what], "3 elements")))
    done = session.cli(*arguments, path)
    return " ".join((done.out + done.err).split())


SAID = [
    ("saved tensors, off the path", "trace --saved", "for backward [3] its memory is not there"),
    (
        "saved tensors, off the path",
        "memory",
        "not in that total: 24 B of 2 storages, whose memory is not there now",
    ),
    (
        "a saved tensor that a hook brings back",
        "backward --gradient ones",
        "no gradient can be sent through the graph: the memory of what MulBackward0 saved has been "
        "given back",
    ),
    (
        "a saved tensor that a hook brings back",
        "backward --gradient h",
        "the gradient cannot be read: the program has given its memory back",
    ),
    (
        "a saved tensor that a hook brings back",
        "explain",
        "derivatives cannot be computed here, because the memory of what MulBackward0 saved has "
        "been given back",
    ),
    ("the root", "check", "the memory of its root has been given back"),
    (
        "the gradient that is fed in",
        "explain",
        "a gradient on the way cannot be read: its memory is not there",
    ),
    ("the gradient that is fed in", "check", "the gradient that is fed in has been given back"),
    ("a tensor on ctx", "explain", "the memory of what Scale saved has been given back"),
    (
        "a tensor that a Function takes from around it",
        "check",
        "the memory of a tensor that it uses has been given back",
    ),
    (
        "what a Function itself gives back",
        "doctor",
        "Scale (program.py:22), because backward raised RuntimeError: it handles the memory of a "
        "tensor itself",
    ),
    (
        "the factor of an in-place change of a view",
        "explain",
        "torch does not tell what CopySlices saved",
    ),
    ("`.grad` before the call", "backward", "its memory is not there + [2, 2, 2] = [2, 2, 2]"),
]
"""What is said of it: of which program, by which command."""


@pytest.mark.parametrize(("what", "command", "words"), SAID)
def test_it_is_said(what: str, command: str, words: str, process: Session) -> None:
    assert words in _said(process, what, *command.split())


def test_sharded_parameters_get_the_gradients_that_they_get_alone(process: Session) -> None:
    report = process.look(_filled(SHARDED, "3 elements").replace("range(9)", "range(1)"))
    path = str(process.folder / "alone.py")
    told = "print([layer.shard.grad.tolist() for layer in net])\n"
    process.write(_filled(SHARDED, "3 elements").replace("range(9)", "range(1)") + told, "alone.py")
    alone = json.loads(python_says(path).out.splitlines()[-1])
    for number, expected in enumerate(alone):
        assert leaf_named(report, f"{number}.w").tensor.released
        assert is_close(new_gradient(report, f"{number}.w"), expected)
