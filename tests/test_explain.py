"""The numbers of an explanation against torch, its words, and what it says when it cannot know."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from statistics import NormalDist

import pytest
import torch
import torchgen
from rich.cells import cell_len
from torchgen.packaged.autograd.load_derivatives import load_derivatives

from gradscope.analyses.explain.rules import formulas
from gradscope.model.explanation import Explanation
from gradscope.model.report import GradientInfo, Report
from gradscope.notation import derivatives as notation
from gradscope.notation import textbook
from tests import beside
from tests.beside import jacobian
from tests.goldens import compare
from tests.looking import Session, new_gradient
from tests.own_functions import function
from tests.test_cases import CASES, EXAMPLES, Case


def told(report: Report) -> Explanation:
    assert report.explanation is not None
    return report.explanation


def row(amount: GradientInfo) -> torch.Tensor:
    found = beside.row(amount)
    assert found is not None
    return found


# ---------------------------------------------------------------- numbers, with torch as the oracle


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_paths_and_weighted_rows_add_up_to_torchs_gradient(case: Case, session: Session) -> None:
    report = session.look_at(*case.arguments, command="explain")
    explanation = told(report)
    tensors = case.build()
    root = tensors[case.root]
    size = root.numel()
    seed = torch.ones(size) if case.gradient is None else case.gradient
    weights = explanation.weights
    assert weights is not None
    assert [float(term.weight) for term in weights.terms] == pytest.approx(seed.reshape(-1))
    assert {end.leaf for end in explanation.ends} == {*range(len(report.graph.leaves))}
    for position, end in enumerate(explanation.ends):
        tensor = tensors[end.name]
        (expected,) = torch.autograd.grad(root, tensor, seed.reshape(root.shape), retain_graph=True)
        wanted = expected.double().reshape(-1)
        assert len(end.paths) == end.count
        along = sum(row(path.contribution) for path in end.paths)
        assert torch.allclose(torch.as_tensor(along), wanted, rtol=1e-5)
        for index, term in enumerate(weights.terms):
            one = torch.zeros(size)
            one[index] = 1
            (derivative,) = torch.autograd.grad(
                root, tensor, one.reshape(root.shape), retain_graph=True
            )
            assert torch.allclose(
                row(term.derivatives[position]), derivative.double().reshape(-1), rtol=1e-5
            )
        summed = sum(float(t.weight) * row(t.derivatives[position]) for t in weights.terms)
        assert torch.allclose(torch.as_tensor(summed), wanted, rtol=1e-5)
    upstream_times_local_is_what_was_sent(report)


def upstream_times_local_is_what_was_sent(report: Report) -> None:
    backward = report.passes[0]
    seen = set()
    for step in told(report).steps:
        assert not step.why
        for local in step.locals:
            upstream = backward.at(step.node, local.output)
            sent = backward.on_edge(local.edge)
            assert upstream.values is not None
            assert sent.values is not None
            above = torch.tensor([float(v) for v in upstream.values], dtype=torch.float64)
            below = torch.tensor([float(v) for v in sent.values], dtype=torch.float64)
            assert torch.allclose(above @ jacobian(local), below, rtol=1e-4, atol=1e-9)
            seen.add(local.edge)
    assert seen == set(range(len(report.graph.edges)))


def test_many_paths_are_counted_and_the_strongest_followed(session: Session) -> None:
    report = session.look(
        """
        import torch
        w = torch.tensor([0.5, 1.0, -2.0], requires_grad=True)
        h = w
        for _ in range(120):
            h = h * 0.9 + torch.sin(h) * 0.1
        h.sum().backward()
        """,
        command="explain",
    )
    (ways,) = told(report).ends
    assert ways.count == 2**120
    assert 0 < len(ways.paths) < 10
    assert ways.rest is not None
    everything = row(ways.rest) + sum(row(path.contribution) for path in ways.paths)
    gradient = new_gradient(report, "w").values
    assert gradient is not None
    wanted = torch.tensor([float(value) for value in gradient], dtype=torch.float64)
    assert torch.allclose(everything, wanted, rtol=1e-4)
    norms = [float(path.contribution.norm or 0) for path in ways.paths]
    assert norms == sorted(norms, reverse=True)


def test_a_large_root_has_weights_and_no_table(session: Session) -> None:
    report = session.look(
        """
        import torch
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.arange(40.0).unsqueeze(1) * x
        y.backward(torch.arange(80.0).reshape(40, 2) / 100)
        """,
        command="explain",
    )
    weights = told(report).weights
    assert weights is not None
    assert (weights.total, weights.terms) == (80, ())
    text = " ".join(session.cli("explain", "report.json").out.split())
    assert "y has 80 elements. The gradient given holds a weight v[i] for each of them" in text
    assert "L = (v * y).sum() So v[i] is ∂L/∂y[i]: how much L changes" in text
    assert "v @ J" not in text


# ---------------------------------------------------------------- formulas and notation


NETWORKS = {
    "GPT": "examples/char_gpt/train.py -- --n-layer 2 --n-embd 36",
    "ResNet": "examples/convnet/train.py",
    "VAE": "tests/clinic/healthy/variational_autoencoder.py",
    "LSTM": "tests/clinic/healthy/lstm_many_steps.py",
    "LSTM of cells": "tests/clinic/healthy/lstm_cell_tagger.py",
    "mixture of experts": "tests/clinic/healthy/mixture_of_experts.py",
}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_node_of_the_usual_networks_has_a_formula(name: str, session: Session) -> None:
    program, *options = NETWORKS[name].split()
    path = str(EXAMPLES.parent / program)
    report = session.look_at("--all", path, *options, command="explain")
    explanation = told(report)
    ops = {node.op for node in report.graph.nodes if node.kind != "leaf"}
    rules = {rule.op: rule for rule in explanation.rules}
    assert set(rules) == ops
    assert [op for op, rule in rules.items() if not rule.formulas] == []


def test_a_node_that_is_in_no_table_says_so(session: Session) -> None:
    report = session.look(
        """
        import torch
        a = torch.ones(2, requires_grad=True)
        b = torch.ones(2, requires_grad=True)
        x, y = torch._foreach_add([a, b], 2.0)
        (x * y).sum().backward()
        """,
        command="explain",
    )
    unknown = [rule for rule in told(report).rules if not rule.formulas]
    assert unknown
    assert all("not known here" in rule.why for rule in unknown)


def as_python(text: str) -> str:
    """Notation as an expression that python can evaluate."""
    text = re.sub(r"√([\d.]+)", r"sqrt(\1)", text)
    text = re.sub(r"(\d)\^(\d)", r"\1**\2", text)
    for sign, code in {
        " × ": "*",
        "²": "**2",
        "√π": "sqrt(pi)",
        "√": "sqrt",
        "ln 2": "log(2)",
    }.items():
        text = text.replace(sign, code)
    return text.replace("ln 10", "log(10)").replace("σ", "sigmoid").replace("π", "pi")


UNARY = sorted(
    op
    for op, templates in textbook.ELEMENTWISE.items()
    if set(templates) == {"self"} and not re.search("where|between", templates["self"])
)


@pytest.mark.parametrize("op", UNARY)
def test_notation_is_the_derivative(op: str) -> None:
    names = {"LogSigmoid": "logsigmoid"}
    name = names.get(op, op.lower())
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name, None)
    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    y = x.view_as(x) if op == "Alias" else x * 1 if function is None else function(x)
    (expected,) = torch.autograd.grad(y, x)
    scope = {name: getattr(math, name) for name in dir(math)}
    scope |= {"sigmoid": lambda v: 1 / (1 + math.exp(-v)), "sign": lambda v: math.copysign(1, v)}
    normal = NormalDist()
    scope |= {"Φ": normal.cdf, "φ": normal.pdf}
    found = eval(as_python(notation.derivative(op, "self", {"self": "0.7"})), scope)
    assert found == pytest.approx(expected.item())


ROWS = "the upstream added to the rows that were looked up, 0 elsewhere"
MEAN = "where the loss is a mean, divided by"
USED = "over all results that the element is used for"
NOTATION = """
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.functional as TF
x = torch.tensor([2.0, 4.0], requires_grad=True)
z, t, scale, scales = torch.ones(2), x * 2, 5.0, torch.tensor([5.0])
w = torch.arange(6.0).reshape(3, 2).requires_grad_()
i, index, target = torch.tensor([0, 1, 1]), torch.tensor([1]), torch.tensor([5.0, 1.0])
linear = nn.Linear(2, 2)
q, v = torch.linalg.eigh(torch.outer(x, x) + torch.eye(2))
(u, k) = t.unbind()
c = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
d = torch.tensor([2.0, 3.0], requires_grad=True)
y = {}
y.backward(torch.ones_like(y))
"""


@pytest.mark.parametrize(
    ("expression", "line"),
    [
        ("torch.log(x)", "∂log(x)/∂x = 1/x = 1/[2, 4] = [0.5, 0.25]"),
        ("3*x", "∂(3 × x)/∂x = 3"),
        ("1 - x", "∂(other - x)/∂x = -1"),
        ("x**3", "∂(x^3)/∂x = 3 × x^2 = 3 × [2, 4]^2 = [12, 48]"),
        ("2**x", "∂(2^x)/∂x = 2^x × ln(2) = 2^[2, 4] × ln(2) = [2.773, 11.09]"),
        ("x / 4", "∂(x/4)/∂x = 1/4 = 0.25"),
        ("F.l1_loss(x, z)[None]", "∂abs(#3)/∂#3 = sign(#3)"),
        ("w + x", "→ x       ∂(w + x)/∂x = 1; summed where x was repeated    [[1, 1], [1, 1]"),
        ("F.relu(x)", "∂relu(x)/∂x = 1 where x > 0, else 0; here 1"),
        # v is the letter of the weights; where the program has a v, they have another one.
        ("x * x", "u = x    ∂(u × w)/∂u = w = [2, 4]"),
        ("v * torch.ones(2)", "holds a weight w[i] for each of them: w = [1, 1, 1, 1]"),
        ("scale * x", "∂(5 × x)/∂x = 5"),
        ("F.elu(x, alpha=0.3)", "∂elu(x)/∂x = 1 where x > 0, else 0.3 × exp(x); here 1"),
        ("F.selu(x)", "1.051 where x > 0, else 1.051 × 1.673 × exp(x); here 1.051"),
        ("F.softplus(x, beta=2)", "= σ(2 × x), and 1 where 2 × x > 20; here [0.982, 0.9997]"),
        ("F.hardtanh(x)", "∂hardtanh(x)/∂x = 1 between -1 and 1, else 0; here 0"),
        ("x**0", "∂(x^0)/∂x = 0"),
        ("nn.GELU()(x)", "∂gelu(x)/∂x = Φ(x) + x × φ(x)"),
        ("x.double()", "∂to_copy(x)/∂x = 1"),
        ("torch.div(x, 3, rounding_mode='floor')", "[1, 1] × 0 = [0, 0]"),
        ("F.mse_loss(x, target)[None]", f"2 × (x - target), times the upstream; {MEAN} n"),
        ("F.mse_loss(z, x * 3)[None]", f"2 × ((x * 3) - z), times the upstream; {MEAN} n"),
        ("F.nll_loss(x[None], index)[None]", f"times the upstream; {MEAN} Σw"),
        ("x.std()[None]", "upstream × (x - mean)/((n - correction) × std)"),
        ("x.var()[None]", "upstream × 2 × (x - mean)/(n - correction); the correction is 1 if"),
        ("x.softmax(0)", "s × (upstream - Σ s × upstream); s is the result, Σ goes along dim"),
        # The same words for convolutions that are transposed.
        ("F.conv1d(x[None], w[:2, None])", f"Σ upstream × weight of the kernel, {USED}    "),
        ("F.conv_transpose1d(x[None], w[None, :1])", f"Σ upstream × #2, {USED}"),
        ("x ** torch.tensor(1.0, requires_grad=True)", "= [2, 4]^1 × ln([2, 4])"),
        ("torch.addmv(x, x[:, None], scales, alpha=3)", "3 × (upstream ⊗ z), z = scales"),
        ("x.norm()[None]", "upstream × sign(x) × (|x|/‖x‖)^(p - 1)"),
        ("linear(x)", "→ #3      weightᵀ    #5ᵀ @ upstream"),
        (
            "torch.stack([x, x * 1.0]).prod()[None]",
            "     torch.stack([x, x * 1.0])    upstream × the",
        ),
        ("nn.LayerNorm(2)(x)", "(g - mean(g) - x̂ × mean(g × x̂))/√(var + eps)"),
        # Operands are named in the order of the function.
        ("F.embedding(i, w * 2)", f"w * 2    {ROWS}  "),
        ("torch.embedding(w * 2, i)", f"w * 2    {ROWS}  "),
        ("F.embedding(i, w, padding_idx=1)", f"{ROWS}; row 1 is padding and gets 0  "),
        ("F.embedding(i, w, scale_grad_by_freq=True)", f"{ROWS}; each row divided by how often it"),
        ("F.embedding_bag(i, w * 2, i[:1])", "w * 2    "),
        ("(w * 2).where(w > 0, w * 3)", "u = w * 2    ∂where(u, x)/∂u"),
        ("torch.where(w > 0, w * 2, 1.0)", "w * 2    ∂where(w * 2, other)/∂(w * 2)"),
        # A module under another name is no operand.
        ("TF.relu(x)", "→ x       ∂relu(x)/∂x = 1 where x > 0"),
        ("TF.mse_loss(x, z)", "→ x       2 × (x - z), times the upstream"),
        ("torch.nested.nested_tensor([x]).to_padded_tensor(0.0)[0]", ""),
        ("x.clamp(0, 1)", "∂clamp(x)/∂x"),
        # Of several results the one that is used.
        ("q ** 2", "∂(q^2)/∂q = 2 × q"),
        ("(v * 3).sum() + u.sum()", "∂(3 × v)/∂v = 3"),
        ("u.exp()", "∂exp(u)/∂u = exp(u)"),
        # Complex numbers.
        ("c * d", "upstream × conj(d)"),
        ("c * d", "the real part of upstream × conj(c)"),
        ("c.conj()", "the conjugate of the upstream"),
        ("c.exp()", "upstream × conj(exp(c))"),
    ],
)
def test_a_step_is_told_in_the_notation_of_a_textbook(
    expression: str, line: str, session: Session
) -> None:
    out = session.told(NOTATION.format(expression), "explain --width 200").out
    assert line in out, out
    assert "torch.nested    " not in out


def test_a_node_of_several_results_is_called_as_backward_calls_it(session: Session) -> None:
    # Torch's own backward of group_norm computes nothing where the first gradient is undefined.
    path = session.write(
        "import torch\ntorch.manual_seed(0)\nx = torch.randn(1, 3, requires_grad=True)\n"
        "w = torch.ones(3, requires_grad=True)\n"
        "y, mean, scale = torch.native_group_norm(x, w, w * 0, 1, 3, 1, 1, 1e-5)\n"
        "torch.autograd.backward([y, mean, scale], [torch.arange(3.0)[None], mean + 1, scale])\n"
    )
    out = session.cli("explain", str(path), "--leaf", "x", "--width", "160").out
    assert "[[0.3333, 0.3333, 0.3333]]" in out
    assert "   v @ J" in out
    assert "the leaf got" not in out and "hooks made it" not in out


@pytest.mark.parametrize("arguments", [(), ("--jacobian",), ("--all",)])
def test_a_root_without_elements_has_nothing_to_weigh(
    arguments: tuple[str, ...], session: Session
) -> None:
    path = session.write("import torch\nx = torch.ones(3, requires_grad=True)\ny = x[:0] * 2\n")
    done = session.cli("explain", str(path), "--gradient", "ones", *arguments)
    assert done.status == 0
    assert "y has no element, so there is nothing to weigh: every gradient is 0." in done.out


ONE = "the upstream at the element that was taken, 0 elsewhere"
SHARED = f"{ONE}; equal ones share it where no dim is given"
LARGEST = "the upstream at the largest element, shared by equal ones, 0 elsewhere"
EQUAL = {"shared": "[0.5, 0, 0.5]", "one": "[1, 0, 0]", "last": "[0, 0, 1]"}


@pytest.mark.parametrize(
    ("expression", "words", "sent"),
    [
        ("x.max()", SHARED, "shared"),
        ("(-x).min()", SHARED, "shared"),
        ("x.median()", SHARED, "shared"),
        ("x.amax()", LARGEST, "shared"),
        ("x.max(0).values", SHARED, "one"),
        ("(-x).min(0).values", SHARED, "one"),
        ("x.median(0).values", SHARED, "one"),
        ("x.kthvalue(3).values", ONE, "last"),
        ("x.mode().values", ONE, "last"),
    ],
)
def test_what_becomes_of_equal_elements(
    expression: str, words: str, sent: str, session: Session
) -> None:
    path = session.write(
        "import torch\nx = torch.tensor([3.0, 1.0, 3.0], requires_grad=True)\n"
        f"y = {expression}\ny.backward()\n"
    )
    out = session.cli("explain", str(path), "--width", "200").out
    step = out.partition("Leaf by leaf")[0]
    assert f"{words}    " in step, step
    assert EQUAL[sent].replace("0.5", "-0.5") in step or EQUAL[sent] in step, step


def test_rounding_and_infinity_make_no_false_disagreement(session: Session) -> None:
    path = session.write(
        """
        import torch
        x = torch.tensor([0.1, 0.2, 0.3], dtype=torch.bfloat16, requires_grad=True)
        y = torch.tensor([1.0, 2.0, 1000.0], requires_grad=True)
        ((x.exp() * x.sin()).sum() + torch.softmax(x * 3, 0)[0] + y.exp().sum()).backward()
        """
    )
    text = session.cli("explain", str(path), "--width", "160").out
    assert "was sent" not in text
    assert "hooks" not in text
    assert "[1, 1, 1] × [2.718, 7.389, inf] = [2.718, 7.389, inf]" in text


def test_what_is_not_listed_is_stated(session: Session) -> None:
    report = session.look(
        """
        import torch
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        h = x * x
        y = h + h.sin() + h.exp() * x - 2 * x
        y.sum().backward()
        """,
        command="explain",
    )
    (ways,) = told(report).ends
    hidden = sum(row(path.contribution) for path in ways.paths[6:])
    brought = [f"{float(value):.4g}" for value in torch.as_tensor(hidden)]
    text = session.cli("explain", str(session.folder / "program.py"), "--width", "80").out
    assert f"the other 2 paths bring [{', '.join(brought)}]: --all" in text
    product = "1 × [1, 1, 1] × 1 × 1 × [1, 2, 3] × [2.718, 54.6, 8103] ×"
    assert product in text


@pytest.mark.parametrize(
    ("program", "lines", "absent"),
    [
        (
            "y = (a * b).sum() + torch.stack([a, a]).sum() + (0 * a).sum() + (b * 0).sum()",
            [
                r"#\d+ → \[0\] a    1 × 1 × 1 × 1 × \[1, 1, 1, 1\] @ \[\[1, 0\], \[0, 1\]",
                r"#\d+ → \[1\] a    1 ×",
                r"   → \[1\] a   its own part of the upstream",
                r"rest +the other path brings 0: --all",
                r"sum +\[\d+, \d+\] \+ \[1, 1\] \+ \[1, 1\] = ",
            ],
            r"\[0, 0\]\n *\.grad",
        ),
        (
            "c = 3 * a + b; c.sum().backward(); y = a * b; y.sum().backward(inputs=[a])",
            [
                r"b gets ∅ not reached: inputs= names other tensors · 1 path",
                r"   what would come:\n +#0 → #1 → b    1 × \[1, 1\] × \[1, 2\] = \[1, 2\]",
                r"\.grad     stays \[1, 1\]: nothing came",
                r"\.grad     \[3, 3\] \+ \[3, 4\] = \[6, 7\]: what was there",
            ],
            r"\+ ∅",
        ),
        ("net = torch.nn.Linear(2, 2); n = a[None]; y = net(n)", [r"ᵀ    nᵀ @ upstream"], "mat1ᵀ"),
        ("net = torch.nn.Linear(2, 2); y = net(torch.ones(1, 2))", [r"inputᵀ @ upstream"], "mat1ᵀ"),
        (
            "dist = torch.distributions.Categorical(logits=a); y = -dist.log_prob(b[0] * 0)",
            [
                r"→ #\d+      dist\.logits    the upstream added",
                r"○ #\d+ Logsumexp  torch\.distributions\.Categorical\(logits=a\)",
            ],
            r"∂dist\b(?!\.)|= dist\b|Logsumexp  dist",
        ),
        ("y = (a * torch.tensor([torch.nan, 2])).sum()", [r"a gets \[nan, 2\] ·"], "got|was sent"),
        (
            "class F(torch.autograd.Function): forward = staticmethod(lambda ctx, t: t * 1); "
            "backward = staticmethod(lambda ctx, g: g.clamp(-1, 1))\n        y = F.apply(a) * 5",
            [r"= \[5, 5\], but \[1, 1\] was sent", r"→ a    \[1, 1\]"],
            "× 5 × 1 =",
        ),
        (
            "W = torch.tensor([[1.0, 0.0], [2.0, 1.0]]); h = W @ a; y = h ** 2",
            [
                r"upstream × local .*\n×: element by element. @: the matrix product",
                r"Wᵀ @ upstream    \[2, 8\] @ \[\[1, 0\], \[2, 1\]\] = \[18, 8\]",
            ],
            "·  ",
        ),
    ],
)
def test_names_signs_and_sums(
    program: str, lines: list[str], absent: str, session: Session
) -> None:
    session.write(
        f"""
        import torch
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        b = torch.tensor([3.0, 4.0], requires_grad=True)
        {program}
        """
    )
    calls = ("--call", "2") if "inputs=" in program else ("--root", "y", "--gradient", "ones")
    out = session.cli("explain", "program.py", *calls, "--width", "200").out
    for line in lines:
        assert re.search(line, out), out
    assert not re.search(absent, out), out


REPARAMETRISED = """
import torch
torch.manual_seed(0)
h = torch.randn(5, 4, requires_grad=True)
logvar = h * 1.0
mu = h.tanh()
z = mu + (0.5 * logvar).exp() * torch.randn(5, 4)
recon = z
for _ in range({rounds}):
    recon = recon.sin().exp()
loss = recon.mean() - 0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean() + torch.stack(
    [logvar, logvar]
).mean()
loss.backward()
"""


@pytest.mark.parametrize("rounds", [1, 9, 30])
@pytest.mark.parametrize("leaf", ["logvar", "h"])
def test_every_step_that_a_shown_path_names_is_shown(
    rounds: int, leaf: str, session: Session
) -> None:
    session.write(REPARAMETRISED.format(rounds=rounds))
    text = session.cli("explain", "program.py", "--leaf", leaf, "--width", "120").out
    steps, _, paths = text.partition("what comes along each path")
    shown = set(re.findall(r"^[◇○] (#\d+) ", steps, re.MULTILINE))
    routes = re.findall(r"^ +(#0 .*?→ (?:\[\d\] )?\w+)(?: {4}|$)", paths, re.MULTILINE)
    assert routes and len(set(routes)) == len(routes), paths
    assert {node for route in routes for node in re.findall(r"#\d+", route)} <= shown
    whole = session.cli("explain", "program.py", "--leaf", leaf, "--all").out
    assert len(set(re.findall(r"^ +(#0 .*?→ (?:\[\d\] )?\w+)(?: {4}|$)", whole, re.MULTILINE))) >= 5
    if rounds < 30:
        assert "0.5 * logvar" in steps


# ---------------------------------------------------------------- words


GOLDEN = [case for case in CASES if re.match(r"A(9|11-first|12|13|14|15|17|18)$", case.name)]


@pytest.mark.parametrize(
    ("case", "width"),
    [*((case, 80) for case in GOLDEN), (GOLDEN[0], 100)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_the_explanation_reads(case: Case, width: int, session: Session) -> None:
    # By its name alone: the length of a path would decide what the first line has room for.
    target, *others = case.command.split()
    shutil.copy(EXAMPLES / target.partition("::")[0], session.folder)
    done = session.cli("explain", target, *others, "--width", str(width), "-o", "x.txt")
    assert done.status == 0, done.err
    text = (session.folder / "x.txt").read_text("utf-8")
    compare(f"explain/{case.name}-{width}.txt", text)
    _head, _, rest = text.partition("\n")
    assert max(map(cell_len, rest.splitlines())) <= width


def test_ascii(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradscope.cli.terminal.has_unicode", lambda: False)
    done = session.cli("explain", str(EXAMPLES / "weights.py"), "--gradient", "ones")
    assert done.out.isascii()
    assert "d log(c)" in done.out or "dlog(c)/dc = 1/c" in done.out


LOOP = """
import torch
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 3
for k in range({rounds}):
    y = y * 2
y.sum().backward()
"""


@pytest.mark.parametrize(
    ("rounds", "lines"),
    [
        (
            8,
            [
                r"   → #2      y    ∂\(2 × y\)/∂y = 2    \[1, 1\] × 2 = \[2, 2\]",
                r"   upstream  \[128, 128\]  \(from #7\)",
                r"1 × \[1, 1\] (× 2 ){8}× 3 = \[768, 768\]",
            ],
        ),
        (20, [r"^○ #20 Mul .* × 2 "]),
        (60, [r"^22 more steps: --all, one of them: --node ID$"]),
    ],
)
def test_of_very_many_steps_the_first_and_the_last_are_told(
    rounds: int, lines: list[str], session: Session
) -> None:
    session.told(LOOP.format(rounds=rounds), "explain --leaf x --all -o told.json")
    text = session.cli("explain", "program.py", "--leaf", "x")
    whole = session.cli("explain", "told.json", "--all").out
    ids = [
        [int(number) for number in re.findall(r"^[○◇] #(\d+) ", out, re.MULTILINE)]
        for out in (text.out, whole)
    ]
    steps = list(range(rounds + 2))
    assert ids == [steps if rounds < 40 else steps[:20] + steps[-20:], steps]
    for line in lines:
        assert re.search(line, text.out, re.MULTILINE), text.out
    assert "more step" not in whole


UNLIKE = """
import torch
x = torch.tensor({start}, requires_grad=True)
h = x
for k in range(18):
    h = torch.sin(h) if bin(k).count("1") % 2 else h * 1.5
h.sum().backward()
"""


def test_a_long_chain_keeps_the_numbers_of_small_tensors(session: Session) -> None:
    session.write(UNLIKE.format(start=[0.5, 1.0]))
    report = session.look_at("program.py", command="explain")
    rows = session.cli("explain", "report.json", "--width", "140").out.splitlines()
    (titles,) = [line for line in rows if line.startswith("step ")]
    wanted = "step expression upstream × local sent on source"
    assert " ".join(titles.split()) == wanted
    for number, node in enumerate(report.graph.nodes[1:-1], 1):
        (told,) = [line for line in rows if re.match(rf"○ #{number} ", line)]
        pairs = re.findall(r"\[([^\]]*), ([^\]]*)\]", told)
        above, sent = (
            [float(value) for value in info.values or ()]
            for info in (report.passes[0].at(node.id, 0), report.passes[0].on_edge(number))
        )
        assert [float(value) for value in pairs[0]] == pytest.approx(above, rel=1e-3)
        assert [float(value) for value in pairs[-1]] == pytest.approx(sent, rel=1e-3)
    # Large ones are told by their norms, in titles that say so.
    large = session.told(UNLIKE.format(start=[0.5] * 20), "explain").out
    assert "upstream sent on ratio source" in " ".join(large.split())
    assert re.search(r"○ #1 .* ‖[\d.]+‖ +‖[\d.]+‖ +×[\d.]+ ", large)


@pytest.mark.parametrize(
    ("expression", "routes"),
    [
        ("x * x", ["#0 → [0] x", "#0 → [1] x"]),
        ("3 * x", ["#0 → x"]),
        # The node that a path goes on to says which operand it is.
        ("2 * x * x", ["#0 → x", "#0 → #1 → x"]),
        ("x * w", ["#0 → x"]),
    ],
)
def test_a_path_says_which_operand_it_took(
    expression: str, routes: list[str], session: Session
) -> None:
    session.write(
        f"""
        import torch
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        w = torch.tensor([0.5, 0.25], requires_grad=True)
        y = {expression}
        """
    )
    out = session.cli("explain", "program.py", "--gradient", "ones", "--leaf", "x").out
    found = re.findall(r"^ +(#0.*?→ (?:\[\d\] )?x)(?: |$)", out, re.MULTILINE)
    assert sorted(found) == sorted(routes)
    assert ("   → [1] x   w = x" in out) == ("#0 → [1] x" in routes)


# ---------------------------------------------------------------- single nodes, Jacobians


def test_one_node(session: Session) -> None:
    done = session.cli("explain", str(EXAMPLES / "chain_rule.py"), "--node", "1")
    assert "0.005 × 8 = 0.04" in done.out
    assert "#2 Mul" not in done.out


# ---------------------------------------------------------------- refusals, and what is not run


LEAVES = """
import torch; lost = torch.tensor(2.0, requires_grad=True)
x = torch.tensor([1.0, 2.0], requires_grad=True)
gone = (lost * 2).detach()
longer_name = torch.ones(30, requires_grad=True)
unused = torch.tensor(2.0, requires_grad=True)
plain = torch.tensor([1.0, 2.0])
index = torch.tensor([0, 1]); held = type("Held", (), {"null": torch.ones(1).requires_grad_()})
cut = x.detach()
with torch.no_grad():
    quiet = x * 2
mid = x * plain
y = (mid * cut * held.null.data).sum() + longer_name.sum()
y.backward()
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--leaf", "longer_nam"], ["no tensor called", "nearest first: longer_name"]),
        (["--leaf", "unuse"], ["no tensor called", "nearest first: unused"]),
        (["--leaf", "lost"], ["lost gets no gradient", "`(lost * 2).detach()` (program.py:3)"]),
        (["--leaf", "null"], ["no tensor called", "cut off at `held.null.data` (program.py:12)"]),
        (["--leaf", "unused"], ["unused gets no gradient", "gradscope doctor"]),
        (["--leaf", "plain"], ["plain gets no gradient", "program.py:6"]),
        (["--leaf", "index"], ["torch.int64 tensors cannot carry gradients"]),
        (["--leaf", "cut"], ["cut gets no gradient", "detach cut it off", "program.py:8"]),
        (["--leaf", "quiet"], ["quiet gets no gradient", "torch.no_grad()"]),
        (["--leaf", "y"], ["y is the root itself"]),
        (["--node", "99"], ["there is no node 99", "--node 0 to"]),
        (["--node", "-1"], ["Invalid value for '--node'"]),
        (["--leaf", "x", "--node", "1"], ["given at once"]),
        (["--jacobian"], ["1 × 30", "at most 24"]),
        (["--create-graph", "nosuch"], ["no tensor called", "nearest first"]),
        (["--create-graph", "x"], ["depends on no leaf", "second derivative is 0"]),
        (["--create-graph", "x", "--root", "mid"], ["root of one element"]),
    ],
    ids=" ".join,
)
def test_refusals_say_why(arguments: list[str], words: list[str], session: Session) -> None:
    done = session.cli("explain", str(session.write(LEAVES)), *arguments)
    assert done.status == 2
    assert done.out == ""
    for word in words:
        assert word in done.err, done.err


@pytest.mark.parametrize(
    ("root", "given", "words"),
    [
        ("(3 * a).sum()", "[0.1, 1.0, 0.0001]", ["shape [3]", "shape []", "added them up"]),
        ("3 * a[:1]", "1.0", []),
    ],
)
def test_a_gradient_that_torch_refuses_is_not_multiplied_on(
    root: str, given: str, words: list[str], session: Session
) -> None:
    session.write(
        f"""
        import torch
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        y = {root}
        y.backward(torch.tensor({given}))
        """
    )
    done = session.cli("explain", "program.py")
    assert done.status == 1
    assert "Mismatch in shape" in done.err
    for word in words:
        assert word in " ".join(done.out.split())
    for false in ("L =", "gets", "weight", "upstream"):
        assert false not in done.out


WATCHFUL = """
import torch
{setup}
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = {expression}
y.sum().backward()
print({printed})
"""

FUNCTION = "log = []\n" + function("F", "x * x", "log.append(1); 2 * x * grad", keeps="x")

CHECKPOINT = """
from torch.utils.checkpoint import checkpoint
log = []
def f(x):
    log.append(1)
    return (x * x).sin()
"""


@pytest.mark.parametrize(
    ("setup", "expression", "words", "calls"),
    [
        (FUNCTION, "F.apply(x)", "backward of F once more could change", 1),
        (CHECKPOINT, "checkpoint(f, x, use_reentrant=False)", "packed by", 2),
        (CHECKPOINT, "checkpoint(f, x, use_reentrant=True)", "CheckpointFunction hides", 2),
    ],
)
def test_what_could_be_noticed_is_not_run(
    setup: str, expression: str, words: str, calls: int, session: Session
) -> None:
    path = session.write(WATCHFUL.format(setup=setup, expression=expression, printed="len(log)"))
    done = session.cli("explain", str(path), "--run-on", "--width", "300")
    assert done.out.splitlines()[0] == str(calls)
    assert words in done.out


def test_a_custom_backward_sends_each_tensor_its_own(session: Session) -> None:
    backward = "None, grad * w * 2, grad * x * 2"
    given = function("F", "x * w * s", backward, "s, x, w", keeps="x, w")
    tensors = "x, w = (torch.tensor([n], requires_grad=True) for n in (3., 5.))"
    session.write(f"import torch\n{given}{tensors}\nF.apply(2., x, w).backward()\n")
    out = session.cli("explain", "program.py").out
    assert "#0 → x    [1] × 10 = [10]" in out and "#0 → w    [1] × 6 = [6]" in out


def test_a_hook_of_the_program_is_not_added_into_a_false_sum(session: Session) -> None:
    path = session.write("""
        import torch
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        b = a * a
        b.register_hook(lambda g: g * 10)
        y = (b + a).sum()
        y.backward()
        """)
    out = session.cli("explain", str(path)).out
    assert "which a hook of the program (program.py:4) replaced by [10, 10]" in out
    assert "[1, 2] + [1, 2] + [1, 1] = [3, 5]; hooks of the program made it [21, 41]" in out


@pytest.mark.parametrize(
    ("roots", "rows"),
    [("(x ** 2).sum(), x.prod()", "a 1 2 4 b"), ("x ** 2, x.prod()", "a[0] 1 2 0 a[1]")],
)
def test_what_several_roots_add_up_to(roots: str, rows: str, session: Session) -> None:
    path = session.write(f"""
        import torch
        x = torch.tensor([1., 2.], requires_grad=True)
        a, b = {roots}
        torch.autograd.backward([a, b], [torch.ones_like(a), None])
        """)
    out = " ".join(session.cli("explain", str(path)).out.split())
    assert "All weights are 1 here, so L is the sum of all elements." in out
    assert f"J = ∂(a and b)/∂x, {rows.count('a') + 1} × 2: " in out
    assert f" v[i] [0] [1] {rows}" in out


# ---------------------------------------------------------------- files


def test_the_formulas_are_those_that_torchs_own_loader_reads() -> None:
    packaged = Path(torchgen.__file__).parent / "packaged"
    files = ("autograd/derivatives.yaml", "ATen/native/native_functions.yaml")
    tags = packaged / "ATen" / "native" / "tags.yaml"
    read, _ = load_derivatives(*(str(packaged / file) for file in files), str(tags))
    theirs = {
        info.op: (str(info.func.func), {(*one.var_names,): one.original_formula for one in found})
        for by_kind in read.values()
        for info in by_kind.values()
        if (found := info.derivatives) and not info.op.endswith("_copy")
    }
    own, why = formulas()
    assert why == ""
    assert theirs == {
        op: (rule.function, {one.arguments: one.text for one in rule.formulas})
        for op, rule in own.items()
    }


def test_without_the_formulas_all_else_is_told(fresh: Session) -> None:
    path = fresh.write("""
        import sys
        sys.modules["yaml"] = None
        import torch
        x = torch.tensor(3.0, requires_grad=True)
        y = x * 2
        y.backward()
        """)
    done = fresh.cli("explain", str(path), "--width", "200")
    assert done.status == 0, done.err
    assert "derivatives.yaml could not be read: ModuleNotFoundError: " in done.out
    assert "1 × 2 = 2" in done.out


def test_a_formula_of_torch_is_shown_where_it_teaches(session: Session) -> None:
    program = ("-c", "(2*b).sin().sum()", "--let", "b=[1,2]")
    told, every = (session.cli("explain", *program, *more).out for more in ((), ("--all",)))
    assert "torch:" not in told
    assert "torch: grad * self.cos().conj()" in every and "torch: mul_tensor_backward" in every
    without = session.cli("explain", "-c", "b.frac()", "--let", "b=3").out
    assert "torch: grad" not in without
    without = session.cli("explain", "-c", "b.lgamma()", "--let", "b=3").out
    assert "torch: grad * digamma(self)" in without


def test_an_expression_that_is_no_leaf_is_answered_with_its_node(session: Session) -> None:
    program = ("explain", "-c", "(2*b).sin().sum()", "--let", "b=[1,2]")
    refused = session.cli(*program, "--leaf", "2*b")
    assert refused.status == 2
    assert 'name what makes it: "#2"' in refused.err
    assert "from the root to #2" in session.cli(*program, "--leaf", "#2").out


def test_steps_that_are_on_no_shown_path_are_counted(session: Session) -> None:
    path = session.write("""
        import torch
        a = torch.ones(3, requires_grad=True)
        x = a.sin().exp()
        y = a
        for _ in range(20):
            y = y.tanh() * 0.01
        loss = (x + y).sum()
        loss.backward()
        """)
    text = session.cli("explain", str(path), "--leaf", "a").out
    assert re.findall(r"^[◇○] #\d+ (\w+)", text, re.MULTILINE) == ["Sum", "Add", "Exp", "Sin"]
    assert "40 more steps: --all, one of them: --node ID" in text
    assert "more step" not in session.cli("explain", str(path), "--leaf", "a", "--all").out


def test_the_picture_has_the_values_and_the_derivative_on_every_edge(session: Session) -> None:
    path = session.write("""
        import torch
        a = torch.tensor(5.0, requires_grad=True)
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        w.register_hook(lambda gradient: 2 * gradient)
        b = a * a
        loss = (b * w).sin().sum() + torch.log(8 * b)
        loss.backward()
        """)
    session.cli("explain", str(path), "-o", "x.dot")
    session.cli("explain", str(path), "-o", "x.html")
    page = (session.folder / "x.html").read_text("utf-8").partition("<svg")[2]
    assert "= 200" in page and "× 0.005 = 0.005" in page
    text = (session.folder / "x.dot").read_text("utf-8")
    a, w = torch.tensor(5.0), torch.tensor([1.0, 2.0])
    local = torch.cos(a * a * w)
    pair = "[{:.4g}, {:.4g}]".format(*local.tolist())
    assert "= 200" in text and "= 25<" in text and "= [25, 50]" in text
    assert "× 0.005 = 0.005" in text and "× 8 = 0.04" in text
    assert f"× {pair} = {pair}" in text
    # What a hook has changed is not the product.
    assert "× [25, 25]" not in text
    session.cli("backward", str(path), "-o", "y.dot")
    plain = (session.folder / "y.dot").read_text("utf-8")
    assert "×" not in plain.replace("used ×2", "") and "= 200" not in plain


def test_operands_have_names_that_are_theirs_alone(session: Session) -> None:
    session.write(
        "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n"
        "z = x * 2\nz[0] += x[1]\nz += 1\nz[1:].mul_(3)\n(z / x).sum().backward()\n"
    )
    told = session.cli("explain", "program.py", "--width", "120").out
    assert "∂(z/x)/∂z" in told
    assert "CopySlices  z[1:].mul_(3) " in told and "= z[1:].mul_(3)" not in told
    assert re.search(r"∂\(#\d \+ other\)/∂#\d = 1", told)
    session.write(
        "import torch\nu = torch.tensor(2.0, requires_grad=True)\nv = u * 3\n"
        "y = torch.sin(u * 4 + u * 5) + torch.cos(v * 6 + u * 7)\ny.backward()\n",
        "letters.py",
    )
    told = session.cli("explain", "letters.py").out
    assert "∂(w + x)/∂w = 1" in told and "w = torch.sin(u * 4 + u * 5)" in told
