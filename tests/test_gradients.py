"""The states and sizes of gradients, where hooks step in, and which edges nothing flows along."""

from __future__ import annotations

import itertools
import re

import pytest
import torch

from gradscope.model.report import GradientInfo
from tests.looking import (
    Session,
    edges_into,
    is_close,
    leaf_named,
    new_gradient,
    node_of,
    tensor_of,
)
from tests.own_functions import function

X = "import torch\nx = torch.ones(40, requires_grad=True)\n"


@pytest.mark.parametrize(
    ("call", "words"),
    [("backward(torch.ones(40))", "gradients flow down"), ("backward()", "gradients would flow")],
)
def test_a_call_that_fails_at_its_root_sends_no_gradients(
    call: str, words: str, session: Session
) -> None:
    assert words in session.told(X + f"(x * 2).{call}\n", "backward").out.splitlines()[0]


KINDS = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")


@pytest.mark.parametrize("kind", KINDS)
def test_results_of_every_kind_keep_their_values(kind: str, session: Session) -> None:
    dtype = getattr(torch, kind)
    report = session.look(f"""
        import torch
        a = torch.tensor([[1, 2, 3], [4, 5, 0.1]], dtype=torch.{kind}, requires_grad=True)
        (a * 3).t().exp().neg().mul_(0.3).conj().abs().sum().backward()
        """)
    a = torch.tensor([[1, 2, 3], [4, 5, 0.1]], dtype=dtype, requires_grad=True)
    (a * 3).t().exp().neg().mul_(0.3).conj().abs().sum().backward()  # type: ignore[no-untyped-call]
    assert a.grad is not None
    assert torch.equal(tensor_of(new_gradient(report, "a"), a), a.grad)
    a = a.detach()
    turned = (a * 3).t()
    is_real = not dtype.is_complex
    for expression, result in {
        "a * 3": a * 3,
        "(a * 3).t()": turned,
        "(a * 3).t().exp()": turned.exp(),
        "(a * 3).t().exp().neg().mul_(0.3)": -turned.exp() * 0.3,
    }.items():
        info = node_of(report, expression).outputs[0]
        assert info is not None
        assert info.shape == result.shape
        numbers = result if is_real else torch.view_as_real(result)
        # Written with the fewest digits that give the same number of the kind.
        told = torch.tensor(list(map(float, info.values or ())), dtype=numbers.dtype)
        assert told.equal(numbers.reshape(-1)), expression


@pytest.mark.parametrize("flush", [False, True], ids=["subnormal", "flushed"])
def test_norms_are_right_where_squares_underflow(flush: bool, session: Session) -> None:
    kinds = ("float32", "bfloat16", "complex64", "float64")
    right: dict[str, tuple[str, int, float]] = {}
    for kind, count in itertools.product(kinds, (17, 100, 20_000, 300_000)):
        for size in (
            (1e-158, 1e-155, 1e300) if kind == "float64" else (2.82e-23, 1e-21, 1e-19, 1e-17)
        ):
            right[f"x{len(right)}"] = (kind, count, size)
    lines = [
        f"{name} = torch.ones({count}, dtype=torch.{kind}, requires_grad=True)\n"
        f"terms.append(({name}.reshape(-1, 1) * torch.tensor({size}, dtype=torch.{kind})).sum())\n"
        for name, (kind, count, size) in right.items()
    ]
    program = f"import torch\ntorch.set_flush_denormal({flush})\nterms = []\n{''.join(lines)}"
    summed = "sum(term.real.double() for term in terms).backward()\n"
    try:
        report = session.look(program + summed)
    finally:
        torch.set_flush_denormal(False)
    for name, (kind, count, size) in right.items():
        size = float(torch.tensor(size, dtype=getattr(torch, kind)).real)
        assert new_gradient(report, name).norm == pytest.approx(
            size * count**0.5, rel=1e-4, abs=0
        ), name


def test_a_sparse_gradient_has_its_layout_and_norm(session: Session) -> None:
    report = session.look("""
        import torch
        table = torch.nn.Embedding(10, 3, sparse=True)
        table(torch.tensor([1, 1, 5])).sum().backward()
        """)
    info = new_gradient(report, "weight")
    assert (info.layout, info.state) == ("sparse_coo", "finite")
    assert info.norm == pytest.approx((4 * 3 + 3) ** 0.5)


def test_a_meta_gradient_is_there_without_numbers(session: Session) -> None:
    report = session.look("""
        import torch
        x = torch.ones(3, device="meta", requires_grad=True)
        (x * 2).sum().backward()
        """)
    assert new_gradient(report, "x") == GradientInfo("finite")


# ---------------------------------------------------------------------- hooks of the program


def test_a_hook_that_changes_a_gradient_is_told_and_the_edges_stay_true(session: Session) -> None:
    report = session.look("""
        import torch
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: g * 10)
        x.register_hook(lambda g: g + 1)
        y.sum().backward()
        """)
    backward = report.passes[0]
    y, x = node_of(report, "x * 2").id, leaf_named(report, "x").node
    assert backward.altered == (y, x)
    assert is_close(edges_into(report, y)[0], [1, 1, 1])
    assert is_close(backward.at(y), [10, 10, 10])
    assert is_close(edges_into(report, x)[0], [20, 20, 20])
    assert is_close(new_gradient(report, "x"), [21, 21, 21])
    told = session.cli("backward", "program.py", "--format", "code").out
    assert "hooks change gradients at 2 nodes: y (program.py:4), x (program.py:5)\n" in told
    assert "y = x * 2" in told and "  △ changed by a hook (program.py:4)\n" in told


def test_a_leaf_that_a_hook_makes_zero_does_not_get_only_zeros(session: Session) -> None:
    session.write(X + "x.register_hook(lambda g: g * 0)\n(x * 2).sum().backward()\n")
    told = session.cli("backward", "program.py").out
    assert "at x (program.py:3): ‖g‖ 12.65 to 0\n" in told and "only zeros" not in told


@pytest.mark.parametrize(
    "hook",
    [
        "y.register_hook(lambda g: None)",
        "y.register_hook(lambda g: g)",
        "y.retain_grad()",
        "x.register_post_accumulate_grad_hook(lambda t: None)",
        "y.grad_fn.register_hook(lambda sent, received: None)",
    ],
)
def test_a_hook_that_changes_nothing_is_no_news(hook: str, session: Session) -> None:
    report = session.look(X + f"y = x * 2\n{hook}\ny.sum().backward()\n")
    assert report.passes[0].altered == ()


@pytest.mark.parametrize(
    ("hook", "op"),
    [
        ("full_backward_hook(lambda module, sent, received: (sent[0] * 10,))", "Mul"),
        ("full_backward_hook(lambda module, sent, received: [sent[0].mul_(10), None][1])", "Mul"),
        ("full_backward_pre_hook(lambda module, received: (received[0] * 10,))", "Tanh"),
    ],
)
def test_what_the_hook_of_a_module_changes_is_told_with_its_line(
    hook: str, op: str, session: Session
) -> None:
    net = f"x = x[:3].detach().requires_grad_()\nnet = torch.nn.Tanh()\nnet.register_{hook}\n"
    report = session.look(X + net + "net(x * 2).sum().backward()\n")
    passed = report.passes[0]
    (node,) = passed.altered
    assert report.graph.nodes[node].short_op == op and passed.hooks == ("program.py:5",)
    (before,) = edges_into(report, node)
    assert is_close(passed.at(node), [10 * float(one) for one in before.values or ()])
    x = torch.ones(3, requires_grad=True)
    (expected,) = torch.autograd.grad(10 * (x * 2).tanh().sum(), x)
    assert is_close(new_gradient(report, "x"), expected)
    told = session.cli("doctor", "program.py").out
    assert "GS504" in told and f"net.register_{hook.partition('(')[0]}" in told
    # One that changes nothing is no news.
    plain = X + net.replace("10", "1") + "net(x * 2).sum().backward()\n"
    assert session.look(plain).passes[0].altered == ()


def test_the_hook_of_a_module_is_not_named_for_what_it_did_not_do(session: Session) -> None:
    two = "class Two(torch.nn.Module):\n    def forward(self, a): return a * 2, a * 3\n"
    logged = X + two + "m = Two()\nm.register_full_backward_hook(lambda *given: None)\nh = x * 1\n"
    # Torch makes zeros of the gradient that no use of an output sends.
    assert session.look(logged + "u, v = m(h)\nu.sum().backward()\n").passes[0].altered == ()
    # Another hook changed what the module's hook was given, on a tensor that nobody holds.
    session.write(
        logged + "h.register_hook(lambda g: g * 5)\nh, v = m(h)\n(h.sum() + v.sum()).backward()\n"
    )
    told = session.cli("backward", "program.py").out
    assert "a hook changes the gradient at " in told and "(program.py:6)" not in told


@pytest.mark.parametrize(
    ("net", "words"),
    [
        ("*(Sequential(Linear(4, 4), Tanh()) for _ in range(9))", {"in 0 Linear"}),
        ("Sequential(Linear(4, 4), Tanh(), Linear(4, 1))", {"in 0.1 Tanh", "in 0.0 Linear"}),
    ],
)
def test_the_module_of_each_step_of_a_line_is_named(
    net: str, words: set[str], session: Session
) -> None:
    made = f"import torch\nfrom torch.nn import *\nnet = Sequential({net})\n"
    once = session.told(made + "net(torch.ones(2, 4)).sum().backward()\n", "backward").out
    assert all(one in once for one in words)
    # Called at two lines, what they wrote tells them apart.
    twice = (
        made + "a = net(torch.ones(2, 4))\nb = net(torch.zeros(2, 4))\n(a + b).sum().backward()\n"
    )
    assert not any(one in session.told(twice, "backward", "--all").out for one in words)


def test_what_a_failed_call_did_not_reach_no_hook_has_changed(session: Session) -> None:
    failing = "h = x.exp()\ny = h * x + x\nwith torch.no_grad(): h += 1\ny.sum().backward()\n"
    told = session.told(X + failing, "backward").out
    assert "from h " in told and "not reached" in told and "changed by a hook" not in told
    for form in ("tree", "dot", "code"):
        told = session.cli("backward program.py --format", form).out
        assert "backward call 1 failed with RuntimeError: one of the variables needed" in told


HOOKED = """
import torch
x = torch.tensor([1., 2.], requires_grad=True)
def clamped(g):
    return g.clamp(-1, 1)
x.register_hook(clamped)
h = x * 3
h.register_hook(lambda g: g * 10)
y = (h ** 2).sum() + h.sum()
y.backward()
"""


def test_of_several_outputs_only_what_a_hook_changed_is_said_to_be(session: Session) -> None:
    session.write(
        "import torch\nx = torch.ones(3, requires_grad=True)\na, b, c = (x * 2).unbind()\n"
        "b.register_hook(lambda g: g * 100)\n(a + b * 3 + c + a * b).backward()\n"
    )
    rows = session.cli("backward", "program.py").out.splitlines()
    (changed,) = [row for row in rows if "changed by a hook" in row]
    assert "↻ [1]" in changed and " 500 " in changed and changed.endswith("program.py:4")
    assert any("sum of 2 edges" in row for row in rows)
    # Also where it is in what is drawn as one.
    session.write(
        "import torch\nclass Double(torch.nn.Module):\n    def forward(self, x):\n"
        "        y = x * 2\n        y.register_hook(lambda g: g * 10)\n        return y + 1\n"
        "x = torch.ones(3, requires_grad=True)\nDouble()(x).sum().backward()\n"
    )
    told = session.cli("backward", "program.py", "--depth", "1").out
    assert "─ 1 gradient changed by a hook inside" in told


@pytest.mark.parametrize(
    ("way", "shown"),
    [
        (
            (),
            [
                "↻ changed by a hook [2] [70, 130] 147.6 ███▌ program.py:7",
                "↻ changed by a hook [2] [1, 1]",
            ],
        ),
        (("--depth", "9"), ["● x [2] [1, 1] (changed by a hook at program.py:3) 1.414"]),
        (("--format", "dot"), ["changed by a hook at program.py:7", "a hook at program.py:3"]),
    ],
    ids=str,
)
def test_what_a_hook_has_changed_is_said_with_its_line(
    way: tuple[str, ...], shown: list[str], session: Session
) -> None:
    out = session.cli("backward", str(session.write(HOOKED)), "--width", "160", *way).out
    words = re.sub(r"<[^>]*>", "", " ".join(out.split()))
    for text in shown:
        assert text in words, out


@pytest.mark.parametrize("bad", ["", ".sqrt()"])
@pytest.mark.parametrize("command", ["trace", "backward", "explain", "memory", "check", "doctor"])
def test_what_a_function_keeps_is_not_taken_for_what_torch_tells(
    command: str, bad: str, session: Session
) -> None:
    program = """
        import torch
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.{}, ctx.{} = factor, "scale"
                return x * factor
            @staticmethod
            def backward(ctx, g):
                return g * ctx.{}, None
        w = torch.tensor([1.0, 0.0], requires_grad=True)
        loss = Scale.apply(w, 3.0).square(){}.sum()
        loss.backward()
        """
    expected = session.told(program.format("factor", "label", "factor", bad), command)
    found = session.told(program.format("variable", "name", "variable", bad), command)
    assert (found.status, found.out) == (expected.status, expected.out)
    assert "Traceback" not in expected.err + found.err


def test_a_backward_call_in_inference_mode_is_seen_as_any_other(session: Session) -> None:
    report = session.look("""
        import torch
        x = torch.ones(3, requires_grad=True)
        y = (x.view(3) * 2).view(3).sum()
        with torch.inference_mode():
            y.backward()
        """)
    assert is_close(new_gradient(report, "x"), [2, 2, 2])
    assert all(
        is_close(info, [2, 2, 2]) for info in edges_into(report, leaf_named(report, "x").node)
    )
    assert report.notes == ()


# ---------------------------------------------------------------------- what is not reached


def test_only_what_was_asked_for_is_reached(session: Session) -> None:
    report = session.look("""
        import torch
        a = torch.ones(2, requires_grad=True)
        b = torch.ones(2, requires_grad=True)
        (a * b).sum().backward(inputs=[a])
        """)
    assert is_close(new_gradient(report, "a"), [1, 1])
    assert new_gradient(report, "b").state == "not reached"
    assert [info.state for info in edges_into(report, leaf_named(report, "b").node)] == [
        "not reached"
    ]


def test_a_none_of_a_function_is_none_and_not_zero(session: Session) -> None:
    report = session.look(f"""
import torch
x = torch.ones(2, requires_grad=True)
y = torch.ones(2, requires_grad=True)
{function("First", "x + y", "grad, None", given="x, y")}
First.apply(x, y).sum().backward()
""")
    assert new_gradient(report, "y").state == "none"
    assert new_gradient(report, "x").state == "finite"


def test_several_roots_each_with_its_seed(session: Session) -> None:
    report = session.look("""
        import torch
        x = torch.arange(3.0, requires_grad=True)
        y, z = x * 2, x * x
        torch.autograd.backward([y, z, y.sum()], [torch.ones(3), torch.full((3,), 2.0), None])
        """)
    assert [root.label for root in report.graph.roots] == ["y", "z", ""]
    seeds = [report.passes[0].gradients[seed].values for seed in report.passes[0].seeds]
    assert seeds == [(1.0, 1.0, 1.0), (2.0, 2.0, 2.0), (1.0,)]
    assert is_close(new_gradient(report, "x"), [4, 8, 12])


def test_a_vectorised_call_is_refused_with_a_way_out(session: Session) -> None:
    text = "import torch\nx = torch.ones(2, requires_grad=True)\ny = x * 2\n"
    text += "torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)\n"
    done = session.cli("backward", str(session.write(text)))
    assert done.status == 2
    assert "is_grads_batched" in done.err
    assert "--root y --gradient onehot:0" in done.err


@pytest.mark.parametrize(("root", "is_said"), [("c", True), ("loss", False)])
def test_a_chosen_root_is_said_to_start_with_1(root: str, is_said: bool, session: Session) -> None:
    code = "b = a * a\nc = 8 * b\nloss = torch.log(c)\nloss.backward()\n"
    report = session.look(
        f"import torch\na = torch.tensor(5.0, requires_grad=True)\n{code}", "--root", root
    )
    note = "backward starts from c with 1, as no --gradient is given"
    assert report.notes == ((note,) if is_said else ())


LEAVES = """
import torch
a, b, c = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(3))
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("y = a * torch.relu(-b) + c", "only zeros reach 2 of 3 leaves: a, b"),
        ("y = a * torch.relu(-b)", "every leaf gets only zeros"),
        ("y = a * 2 * torch.sqrt(b - b.detach()) + c", "; 1 of 3 leaves gets NaN or infinity"),
        ("y = a * 2 * torch.where(b > 5, b / 0, b) + c", "; 1 of 3 leaves gets NaN or infinity"),
        ("y = torch.sigmoid(5 * (a + b + c))", "‖g‖ falls from 1.414 to 3.576e-7 at Sigmoid of"),
        (
            "y = torch.sigmoid(5 * (a + b.detach() + 0 * b + c))",
            "only zeros reach 1 of 3 leaves: b · ‖g‖ falls from 1.414 to 3.576e-7 at Sigmoid of",
        ),
        (
            "a = a / 1000\nfor _ in range(70): c = c.sin()\ny = torch.log(a) + b + c",
            "‖g‖ grows ×791, 1.414 to 1118, at Log of torch.log(a)",
        ),
        (
            "for _ in range(70): c = c * 0.9\ny = a + b + c",
            "‖g‖ falls to 1/1440 from round 70 back to round 1 at program.py:",
        ),
        # One of them does it.
        (
            "for k in [1] * 30 + [0.02] + [0.99] * 39: c = c * k\ny = a + b + c",
            "‖g‖ falls to 1/50 from round 31 back to round 30 at program.py:",
        ),
        ("y = 3 * a - 2.9 * a + b + c", "2 gradients cancel 98.3 % at a"),
        (
            "y = 1e-6 * a + b + c",
            "1 of 3 leaves gets next to nothing, ‖g‖ up to 1.414e-6: a",
        ),
        # A scalar that is spread over many is no more.
        ("y = a.sum().expand(2000).mean() + b + c", ""),
        ("y = 3 * a - a + b + c", ""),
        # What a mean and a weight leave is meant; and b is reached by another way.
        ("y = 1e-5 * (a + b + c).repeat(9999).mean()", ""),
        ("y = torch.sigmoid(5 * (a + c)) + b", ""),
        ("y = a * b + c", ""),
    ],
)
@pytest.mark.parametrize("format", ["tree", "code", "dot"])
def test_the_verdict_stands_above_all(line: str, told: str, format: str, session: Session) -> None:
    session.write(f"{LEAVES}{line}\ny.sum().backward()\n")
    text = " ".join(session.cli("backward", "program.py", "--format", format).out.split())
    assert told in text
    # The operation is marked where it stands.
    for sign, name, does in (
        ("▲", "Sigmoid", "falls to 3.576e-7"),
        ("△", "Log", "grows ×791, 1.414 to 1118"),
    ):
        marks = {"tree": f"{sign} ○ {name} {does}", "code": f"{sign} {does}"}
        assert (marks.get(format, f"{sign} {does}") in text) == (f" at {name} of" in told)
    words = "only zeros", "NaN or infinity", "vanishes", "falls", "grows", "cancel", "next to"
    assert told or not any(word in text for word in words)


SHIFTED = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential({layer}, nn.{norm}(8), nn.Tanh(), nn.Flatten(), nn.LazyLinear(2))
net(torch.randn({shape})).square().sum().backward()
"""


@pytest.mark.parametrize(
    ("layer", "norm", "shape"),
    [
        ("nn.Linear(4, 8)", "BatchNorm1d", (16, 4)),
        ("nn.Conv2d(1, 8, 3)", "BatchNorm2d", (4, 1, 6, 6)),
    ],
)
def test_of_a_bias_that_gets_only_rounding_it_is_said_that_its_sum_cancels(
    layer: str, norm: str, shape: tuple[int, ...], session: Session
) -> None:
    session.write(program := SHIFTED.format(layer=layer, norm=norm, shape=shape))
    told = " ".join(session.cli("backward", "program.py", "--width", "300").out.split())
    sizes: list[float] = []
    hook = "net[1].register_full_backward_hook(lambda *given: keep(float(given[1][0].norm())))"
    exec(program.replace("net(torch", f"{hook}\nnet(torch"), {"keep": sizes.append})
    words = r"the other gets at most \S+: up to (\S+) arrives there and cancels: 0.bias"
    assert float(*re.findall(words, told)) == pytest.approx(sizes[0], rel=1e-3)
    # Where a hook makes it small nothing cancels.
    small = "net[0].bias.register_hook(lambda gradient: gradient * 1e-9)\nnet(torch"
    hooked = re.sub(r"nn.BatchNorm.d\(8\)", "nn.Tanh()", program.replace("net(torch", small))
    session.write(hooked)
    told = session.cli("backward", "program.py", "--width", "300").out
    assert "next to nothing" in told and "arrives and cancels" not in told


TINY_BIASES = """
import torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, small):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 4), nn.Linear(4, 4)
        self.small = small
    def forward(self, x):
        hidden = nn.functional.linear(x, self.fc.weight, self.fc.bias * self.small)
        return x + self.out(hidden.tanh())
net = nn.Sequential(*[Block(1e-9 if place in {few} else 1) for place in range(4)])
net(torch.randn(3, 4)).square().sum().backward()
"""


@pytest.mark.parametrize(
    ("few", "who", "names"),
    [
        ({0, 1, 2, 3}, "fc.bias ×4", "*.fc.bias"),
        ({1, 3}, "fc.bias ×2", "1.fc.bias, 3.fc.bias"),
        ({2}, "2.fc.bias", "2.fc.bias"),
    ],
)
def test_what_is_said_of_leaves_is_marked_at_closed_modules_and_at_lines(
    few: set[int], who: str, names: str, session: Session
) -> None:
    session.write(TINY_BIASES.replace("{few}", str(few)))
    head = " ".join(session.cli("backward", "program.py", "--width", "300").out.split())
    assert re.search(rf"next to nothing, ‖g‖ up to \S+: {re.escape(names)} ", head)
    for width in ("140", "40"):
        code = session.cli("backward", "program.py", "--format", "code", "--width", width).out
        lines = code.splitlines()
        (at,) = [place for place, line in enumerate(lines) if " hidden = nn" in line]
        assert f"  △ {who}: next to nothing" in lines[at + 1 : at + 4]
    for format in ("dot", "tree"):
        drawn = session.cli("backward", "program.py", "--depth", "1", "--format", format).out
        assert f"{who}: next to nothing" in drawn and "△ " in drawn


def test_a_row_has_all_that_arrives_at_each_call_with_its_hooks(session: Session) -> None:
    session.write("""
        import torch
        w = torch.tensor([3.0, 4.0], requires_grad=True)
        for step in range(3):
            if step == 2:
                w.register_hook(lambda g: g * 100)
            loss = (w * (step + 1)).sum() + (w * 5).sum()
            loss.backward()
        """)
    rows = session.cli("backward", "program.py", "--steps", "3", "--width", "140").out.splitlines()
    (at,) = [place for place, row in enumerate(rows) if "─● w" in row]
    arrive, edge = (re.findall(r" (\d[\d.]*)", row)[-3:] for row in rows[at : at + 2])
    # √2 times what each element gets.
    assert arrive == ["8.485", "9.899", "1131"]
    assert edge == ["1.414", "2.828", "4.243"] and "from w * (step + 1)" in rows[at + 1]


def test_a_graph_without_gradients_says_nothing_of_their_size(session: Session) -> None:
    session.write("""
        import torch
        net = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(4)))
        loss = net(torch.ones(1, 2)).sum()
        """)
    assert "‖g‖" not in session.cli("trace", "program.py").out


@pytest.mark.parametrize(
    ("factor", "change"),
    [
        (1.13, f"grows ×{1.13**19:.3g}"),
        (1.12, ""),
        (-1.2, f"grows ×{1.2**19:.3g}"),
        (0.885, f"falls to 1/{0.885**-19:.3g}"),
        (0.89, ""),
    ],
)
def test_by_how_much_a_gradient_grows_or_falls_is_told(
    factor: float, change: str, session: Session
) -> None:
    # Each block multiplies what goes through it; ten times as much is told.
    session.write(
        "import torch\nfrom torch import nn\n\n"
        "class Block(nn.Module):\n"
        "    def forward(self, x):\n"
        f"        return torch.neg(x) * {factor}\n\n"
        "x = torch.ones(3, requires_grad=True)\n"
        "nn.Sequential(*(Block() for _ in range(20)))(x).sum().backward()\n"
    )
    text = " ".join(session.cli("backward", "program.py").out.split())
    assert (f"‖g‖ {change} from Sequential.19 back to Sequential.0" in text) == bool(change)
    assert change or not any(word in text for word in ("grows", "falls"))


DEEP = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, root):
        super().__init__()
        self.fc, self.root = nn.Linear(4, 4), root
    def forward(self, x):
        h = torch.relu(self.fc(x))
        return x + (h**0.5 if self.root else h)

torch.manual_seed(0)
nn.Sequential(*(Block(number == 4) for number in range(12)))(torch.randn(8, 4)).sum().backward()
"""


def test_what_is_to_blame_is_seen_however_much_is_closed(session: Session) -> None:
    tree = session.told(DEEP, "backward").out
    (row,) = [line for line in tree.splitlines() if "✖ ○ Pow " in line]
    assert "makes Inf" in row
    assert "✖ makes Inf" in session.cli("backward", "program.py", "--format", "dot").out
    # Who says how deep to look gets that.
    assert "✖ ○" not in session.cli("backward", "program.py", "--depth", "1").out


@pytest.mark.parametrize(
    ("call", "asked", "told"),
    [
        # A leaf that is not reached gets no zeros.
        ("(a * torch.relu(-b)).sum().backward(inputs=[a])", "", "reach 1 of 2 leaves: a"),
        # Below a line each leaf is told.
        ("(a * torch.relu(-b) + c).sum().backward()", "--format code", "● c 1.414, a 0, b 0"),
    ],
)
def test_which_leaves_get_zeros(call: str, asked: str, told: str, session: Session) -> None:
    text = session.told(f"{LEAVES}{call}\n", f"backward --width 140 {asked}").out
    assert told in text and "every leaf" not in text


@pytest.mark.parametrize(("called", "told"), [("layers", " in layers.2"), ("layers[2:3]", "")])
def test_which_of_the_modules_of_a_line_makes_the_first_nan_is_told(
    called: str, told: str, session: Session
) -> None:
    session.write(
        "import torch\nfrom torch import nn\n\n"
        "class Block(nn.Module):\n"
        "    def __init__(self, scale):\n"
        "        super().__init__()\n"
        "        self.scale = nn.Parameter(torch.tensor(scale))\n"
        "    def forward(self, x):\n"
        "        return x + torch.sqrt(x.square() * self.scale)\n\n"
        "class Model(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layers = nn.ModuleList(Block(scale) for scale in (1.0, 1.0, 0.0, 1.0, 1.0))\n"
        "    def forward(self, x):\n"
        f"        for layer in self.{called}:\n"
        "            x = layer(x)\n"
        "        return x\n\n"
        "Model()(torch.ones(3)).sum().backward()\n"
    )
    text = " ".join(session.cli("backward", "program.py").out.split())
    said = f"✖ Sqrt of torch.sqrt(x.square() * self.scale){told} (program.py:9) makes the first NaN"
    assert said in text


def test_heads_side_by_side_are_no_way_along_which_a_gradient_vanishes(session: Session) -> None:
    session.write(
        "import torch\nfrom torch import nn\n\n"
        "class Head(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.f = nn.Linear(4, 4)\n"
        "    def forward(self, x):\n"
        "        return torch.tanh(self.f(x))\n\n"
        "heads, x, total = nn.ModuleList(Head() for _ in range(6)), torch.ones(2, 4), 0\n"
        "for number, head in enumerate(heads):\n"
        "    total = total + head(x).sum() * 10.0**number\n"
        "total.backward()\n"
    )
    for asked in ((), ("--all",), ("--depth", "9"), ("--format", "code")):
        out = session.cli("backward", "program.py", *asked).out
        assert out and not re.search("vanishes|falls|grows", out), asked
