"""The gradient taken apart: every number against torch by hand, the words, and what is refused."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch import nn

import gradscope
from gradscope.model.report import Report
from gradscope.model.studies import MOST_COMPARED, Split, SplitLeaf, SplitNode
from gradscope.render import as_text
from gradscope.render.answers.split import render
from gradscope.render.options import Options
from tests.conftest import process_preserved
from tests.looking import Session
from tests.own_functions import function
from tests.test_page import packed
from tests.test_unchanged import alone

START = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
"""


@dataclass(frozen=True)
class Program:
    """A program that ends with a loss, and its terms: their names in the answer, and code that
    computes each again from what the program left."""

    name: str
    text: str
    terms: dict[str, str]
    by: str = "term"
    rest: str = ""
    mixes: str = ""
    options: tuple[str, ...] = field(default=())

    @property
    def source(self) -> str:
        return START + textwrap.dedent(self.text)


VAE = """
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.mu, self.logvar = nn.Linear(8, 2), nn.Linear(8, 2)
        self.dec = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 6))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        return self.dec(mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)), mu, logvar

x = torch.rand(5, 6)
model = VAE()
recon, mu, logvar = model(x)
mse = F.mse_loss(recon, x)
kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
"""

NET = """
x, y = torch.randn(6, 4), torch.randint(3, (6,))
model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
out = model(x)
"""


def read(texts: str) -> tuple[Program, ...]:
    """The programs of a text: ``# name``, the code, and after ``=>`` the terms, each by its name
    and, after a ``=``, what computes it again; ``by``, ``given``, ``rest`` and ``mixes`` where
    there are any."""
    found = []
    for title, text in (one.split("\n", 1) for one in texts.strip("\n# ").split("\n\n# ")):
        lines = text.splitlines()
        more = dict(line.split(" -> ") for line in lines if " -> " in line)
        told = [line for line in lines if line.startswith("=> ")]
        code = [line for line in lines if " -> " not in line and line not in told]
        code = [{"VAE": VAE, "NET": NET}.get(line, line) for line in code]
        pairs = (one.split(" = ") for line in told for one in line[3:].split(" | "))
        terms = {name: rest[0] if rest else name for name, *rest in pairs}
        options = ("--gradient", more.pop("given")) if "given" in more else ()
        found.append(Program(title, "\n".join(code), terms, options=options, **more))
    return tuple(found)


PROGRAMS = read(
    """
# vae by sample and term
VAE
fit = F.mse_loss(recon, x, reduction="none").mean(1)
gap = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1)
loss = (fit + 3 * gap).mean()
=> fit = fit.mean() | 3 * gap = 3 * gap.mean()

# what goes through named tensors
VAE
loss = mse + 100 * kl
by -> recon, kl
=> recon = mse | kl = 100 * kl

# the rest goes through no named tensor
VAE
loss = mse + 100 * kl
by -> kl
=> kl = 100 * kl
rest -> mse

# a node by its number, and a leaf that is behind it
NET
loss = F.cross_entropy(out, y)
by -> #0, 0.weight
=> #0 = loss | 0.weight = 0 * loss

# a stack of losses
NET
losses = [F.cross_entropy(out, y), out.pow(2).mean()]
loss = torch.stack(losses).mean()
=> losses[0] = losses[0] / 2 | losses[1] = losses[1] / 2

# many steps of one line are one term
NET
parts = [(out * step).tanh().pow(2).mean() for step in range(1, 12)]
ce = F.cross_entropy(out, y)
loss = ce + sum(parts)
=> parts[0] ×11 = sum(parts) | ce

# weight decay beside a loss
NET
ce = F.cross_entropy(out, y)
decay = sum(p.pow(2).sum() for p in model.parameters())
loss = ce + 1e-2 * decay
=> ce | p.pow(2).sum() #1 = 1e-2 * [*model.parameters()][0].pow(2).sum()
=> p.pow(2).sum() #2 = 1e-2 * [*model.parameters()][1].pow(2).sum()
=> p.pow(2).sum() #3 = 1e-2 * [*model.parameters()][2].pow(2).sum()
=> p.pow(2).sum() #4 = 1e-2 * [*model.parameters()][3].pow(2).sum()

# one term behind another
NET
ce = F.cross_entropy(out, y)
loss = ce + ce.detach() * out.mean() - 0.5 * ce.log()
=> ce | ce.detach() * out.mean() | 0.5 * ce.log() = -0.5 * ce.log()

# a leaf as a term
a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
loss = a + 2 * a * b
=> a | 2 * a * b

# a term that reaches nothing
NET
floor = out.mean().clamp(min=9.0)
loss = floor + F.cross_entropy(out, y)
=> floor | F.cross_entropy(out, y)

# a root of several elements
a, b, c = (torch.tensor(v, requires_grad=True) for v in ([1.0, 2], [3.0, 4], [6.0, 7]))
loss = 3 * a + 2 * b * b + torch.log(c)
given -> [0.1, 1]
=> 3 * a = (3 * a * torch.tensor([0.1, 1])).sum()
=> 2 * b * b = (2 * b * b * torch.tensor([0.1, 1])).sum()
=> torch.log(c) = (torch.log(c) * torch.tensor([0.1, 1])).sum()

# weights of a stack
NET
losses = torch.stack([F.cross_entropy(out, y), out.pow(2).mean()])
loss = (losses * torch.tensor([1.0, 0.1])).sum()
=> F.cross_entropy(out, y) | out.pow(2).mean() = 0.1 * out.pow(2).mean()

# half precision
NET
out = model.bfloat16()(x.bfloat16())
ce, size = F.cross_entropy(out, y), out.pow(2).mean()
loss = ce + size
=> ce | size

# complex numbers on the way
w = torch.randn(4, dtype=torch.complex64, requires_grad=True)
power, angle = (w * w.conj()).real.sum(), w.abs().log().sum()
loss = power + angle
=> power | angle

# an embedding with sparse gradients
table = nn.Embedding(6, 3, sparse=True)
rows = table(torch.tensor([1, 1, 4]))
near, far = rows.pow(2).sum(), rows.tanh().sum()
loss = near + far
=> near | far

"""
)


def look(program: Program, session: Session) -> Report:
    text = (
        f"{program.source}\nloss.backward({'torch.ones_like(loss)' if program.options else ''})\n"
    )
    return session.look(text, "--by", program.by, *program.options)


def left_by(source: str) -> dict[str, Any]:
    """The variables of a program, run without a backward call."""
    namespace: dict[str, Any] = {}
    with process_preserved():
        exec(compile(source, "program.py", "exec"), namespace)
    return namespace


def leaf(name: str, namespace: dict[str, Any]) -> torch.Tensor:
    """The leaf that a report calls so."""
    modules = {k: v for k, v in namespace.items() if isinstance(v, nn.Module)}
    for prefix, module in modules.items():
        known = dict(module.named_parameters())
        found = known.get(name if len(modules) == 1 else name.removeprefix(f"{prefix}."))
        if found is not None and (len(modules) == 1 or name.startswith(f"{prefix}.")):
            return found
    value = eval(name, namespace)
    assert isinstance(value, torch.Tensor)
    return value


def split_of(report: Report) -> Split:
    assert report.split is not None
    return report.split


SAMPLES = read(
    """
# rows of logits
NET
loss = F.cross_entropy(out, y)
=> out = F.cross_entropy(out, y, reduction='none')[i] / 6

# both terms have the batch
VAE
loss = mse + 100 * kl
=> recon = F.mse_loss(recon[i], x[i]) / 5 - 10 * (1 + logvar - mu**2 - logvar.exp())[i].sum()

# a penalty of no sample is the rest
NET
decay = model[0].weight.pow(2).sum()
loss = F.mse_loss(out, torch.ones(6, 3)) + 0.1 * decay
=> out = F.mse_loss(out[i], torch.ones(3)) / 6
rest -> 0.1 * decay

# both sides of a loss learn
x = torch.randn(4, 3)
student, other = nn.Linear(3, 2), nn.Linear(3, 2)
a, b = student(x), other(x)
loss = F.mse_loss(a, b)
=> b = F.mse_loss(a[i], b[i]) / 4

# attention over the batch, which is taken for the sequence
x, y = torch.randn(4, 5, 8), torch.randn(4, 3)
pre, attend, head = nn.Linear(8, 8), nn.MultiheadAttention(8, 2), nn.Linear(8, 3)
h = pre(x)
out = head(attend(h, h, h, need_weights=False)[0].mean(1))
loss = F.mse_loss(out, y)
=> out = F.mse_loss(out[i], y[i]) / 4
mixes -> ScaledDotProduct

# a view where a transpose is meant
enc, head = nn.Linear(5, 5), nn.Linear(5, 2)
x, y = torch.randn(4, 6, 5), torch.randn(4, 2)
out = head(torch.tanh(enc(x).view(6, 4, 5)).transpose(0, 1).mean(1))
loss = F.mse_loss(out, y)
=> out = F.mse_loss(out[i], y[i]) / 4
mixes -> View

# as many steps as samples, the steps first
rnn, head = nn.GRU(3, 5), nn.Linear(5, 1)
x, y = torch.randn(4, 4, 3), torch.randn(4, 1)
states, last = rnn(x)
out = head(states[-1] + states.mean(0))
loss = F.mse_loss(out, y)
=> out = F.mse_loss(out[i], y[i]) / 4

# as many tokens as samples, with positions and attention
tokens, places, head = nn.Embedding(9, 8), nn.Embedding(16, 8), nn.Linear(8, 9)
attend = nn.MultiheadAttention(8, 2, batch_first=True)
ids, y = torch.randint(9, (4, 4)), torch.randint(9, (4, 4))
h = tokens(ids) + places(torch.arange(4))
logits = head(attend(h, h, h, need_weights=False)[0])
loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
=> logits = F.cross_entropy(logits[i], y[i]) / 4

# the pixels of a batch, all in rows
x, y = torch.randn(3, 2, 4, 5), torch.randint(6, (3, 4, 5))
conv = nn.Conv2d(2, 6, 1)
logits = conv(x).permute(0, 2, 3, 1)
loss = F.cross_entropy(logits.reshape(-1, 6), y.reshape(-1))
=> logits = F.cross_entropy(logits[i].reshape(-1, 6), y[i].reshape(-1)) / 3
"""
)


@pytest.mark.parametrize("program", SAMPLES, ids=lambda one: one.name)
def test_each_sample_brings_what_torch_says(program: Program, session: Session) -> None:
    report = look(replace(program, by="sample"), session)
    split = split_of(report)
    namespace = left_by(program.source)
    ((rows, term),) = program.terms.items()
    assert rows in split.rows
    samples = [one for one in split.pieces if not one.rest]
    assert [one.index for one in samples] == [(row,) for row in range(split.total)]
    wanted = [eval(term, {**namespace, "i": row}) for row in range(split.total)]
    wanted += [eval(program.rest, namespace)] if program.rest else []
    _compare(report, wanted, namespace)
    mixing = split.mixing
    assert (mixing is not None) == bool(program.mixes)
    if mixing is not None:
        assert report.graph.nodes[mixing.node].short_op.startswith(program.mixes)


OUTPUTS = {
    "a linear layer": ("lin = nn.Linear(3, 4)\nz = lin(torch.randn(2, 3))", "output", 8),
    "the first three": ("lin = nn.Linear(3, 4)\nz = lin(torch.randn(2, 3))", "output:3", 3),
    "one number": ("w = torch.randn(3, requires_grad=True)\nz = w.pow(3).sum()", "output", 1),
    "more than unasked": ("w = torch.randn(30, requires_grad=True)\nz = w.exp()", "output", 16),
    "more than at once": ("w = torch.randn(40, requires_grad=True)\nz = w.exp()", "output:40", 40),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_each_output_has_its_row_of_the_jacobian(name: str, session: Session) -> None:
    text, by, rows = OUTPUTS[name]
    program = Program(name, text, {})
    report = session.look(program.source, "--by", by, "--root", "z")
    namespace = left_by(program.source)
    split = split_of(report)
    z = namespace["z"]
    assert (len(split.pieces), split.total) == (rows, z.numel())
    assert [one.value for one in split.pieces] == pytest.approx(z.reshape(-1)[:rows].tolist())
    assert [z[one.index].item() for one in split.pieces] == z.reshape(-1)[:rows].tolist()
    _compare(report, [z[one.index] for one in split.pieces], namespace)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_each_term_brings_what_torch_says(program: Program, session: Session) -> None:
    report = look(program, session)
    split = split_of(report)
    namespace = left_by(program.source)
    wanted = [*program.terms.values(), *([program.rest] if program.rest else [])]
    assert [one.name for one in split.pieces if not one.rest] == [*program.terms]
    tensors = [eval(term, namespace) for term in wanted]
    _compare(report, tensors, namespace)
    known = [(one.value, of) for one, of in zip(split.pieces, tensors, strict=True) if one.value]
    # What each adds to the loss, not the number that its factor stands before.
    assert [value for value, _ in known] == pytest.approx([of.item() for _, of in known], rel=1e-2)


def _compare(report: Report, wanted: list[torch.Tensor], namespace: dict[str, Any]) -> None:
    """Every norm and inner product with those of torch's gradients of these numbers."""
    split = split_of(report)
    assert len(split.pieces) == len(wanted)
    assert len(split.leaves) == len(report.graph.leaves)
    for node in split.nodes:
        record = report.graph.nodes[node.node]
        origin = report.graph.origin_of(record)
        # Of what a loop assigns again only the last is left.
        is_left = record.variable != "h" and origin is not None and origin.function == "<module>"
        tensor = namespace.get(record.variable) if is_left else None
        if isinstance(tensor, torch.Tensor):
            _compare_norms(node, wanted, tensor)
    for one in split.leaves:
        tensor = leaf(report.graph.leaves[one.leaf].names[0], namespace)
        inner, slack, scale = _compare_norms(one, wanted, tensor)
        assert bool(one.products) == (len(wanted) <= MOST_COMPARED)
        for at, products in enumerate(one.products):
            near = pytest.approx(inner[at, :at].tolist(), rel=slack, abs=slack * scale)
            assert [*map(float, products)] == near


def _compare_norms(
    one: SplitLeaf | SplitNode, wanted: list[torch.Tensor], tensor: torch.Tensor
) -> tuple[torch.Tensor, float, float]:
    rows = torch.stack([gradient_of(value, tensor) for value in wanted])
    inner = rows @ rows.T
    slack = 2e-2 if tensor.dtype is torch.bfloat16 else 1e-4
    scale = max(float(inner.diag().max()), 1e-6)
    near = pytest.approx(inner.diag().sqrt().tolist(), rel=slack, abs=slack * scale**0.5)
    assert [*map(float, one.norms)] == near
    return inner, slack, scale


def gradient_of(value: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    (found,) = torch.autograd.grad(value, tensor, retain_graph=True, allow_unused=True)
    if found is None:
        found = torch.zeros_like(tensor)
    found = found.detach().to_dense()
    found = torch.view_as_real(found) if found.is_complex() else found
    return found.double().reshape(-1)


# ---------------------------------------------------------------- nothing of it is noticed

NOTICING = """
events = []
x, y = torch.randn(5, 4), torch.randint(3, (5,))
DOUBLED
model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 3))
for number, parameter in enumerate(model.parameters()):
    parameter.register_hook(lambda g, n=number: events.append(("hook", n)))
    parameter.register_post_accumulate_grad_hook(lambda p, n=number: events.append(("post", n)))
model[0].register_full_backward_hook(lambda *_: events.append("module"))
h = model[:2](x)
h.register_hook(lambda g: events.append("tensor") or 3 * g)
h.retain_grad()
out = Doubled.apply(model[2:](h))
ce, size = F.cross_entropy(out, y), out.pow(2).mean()
loss = ce + size
versions = [p._version for p in (*model.parameters(), *model.buffers(), x, h, out)]
loss.backward()
print(events)
print(versions == [p._version for p in (*model.parameters(), *model.buffers(), x, h, out)])
print([p.grad.double().sum().item().hex() for p in (*model.parameters(), h)])
print(torch.rand(1).item().hex(), torch.is_grad_enabled())
""".replace("DOUBLED", function("Doubled", "value * 2", "grad * 2", given="value", keeps="value"))


@pytest.mark.parametrize("by", ["term", "sample", "h", "ce, size", "output"])
def test_hooks_run_once_and_nothing_changes(by: str, session: Session) -> None:
    path = str(session.write(START + NOTICING))
    plain = alone(path)
    done = session.cli("backward", path, "--by", by, "--run-on", "-q", "-o", "told.json")
    assert done.status == 0, done.err
    assert done.out == plain
    assert plain.count("'tensor'") == 1


def test_from_python_nothing_changes_either() -> None:
    namespace: dict[str, Any] = {}
    text = (START + NOTICING).partition("loss.backward()")[0]
    with process_preserved():
        exec(compile(text, "program.py", "exec"), namespace)
        loss, parameters = namespace["loss"], [*namespace["model"].parameters()]
        state = torch.get_rng_state()
        report = gradscope.backward(loss, by="term")
        assert torch.equal(state, torch.get_rng_state())
        assert all(one.grad is None for one in parameters)
        assert namespace["h"].grad is None
        assert len(split_of(report).pieces) == 2
        loss.backward()  # its buffers are there
        assert "2 terms" in str(report)


def test_from_python_terms_are_data() -> None:
    torch.manual_seed(0)
    w, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    fit, size = (w * b).exp().sum(), w.pow(2).sum()
    found = gradscope.backward(fit + 10 * size, by="term").by_term()
    assert [*found] == ["fit", "size"]  # the variable nearest to it
    of_fit = torch.cat(torch.autograd.grad(fit, (w, b), retain_graph=True))
    (of_size,) = torch.autograd.grad(10 * size, w)
    norms = [float(of_fit.norm()), float(of_size.norm())]
    assert [one.norm for one in found.values()] == pytest.approx(norms)
    assert [one.share for one in found.values()] == pytest.approx(
        [one / sum(norms) for one in norms]
    )
    cosine = float(of_fit[:3] @ of_size) / (norms[0] * norms[1])
    assert [one.cosine for one in found.values()] == pytest.approx([cosine] * 2)
    assert found["size"].modules == pytest.approx({"w": norms[1]})
    assert [*found["fit"].modules] == ["w", "b"]
    for report in (gradscope.backward(fit), gradscope.backward(fit, by="output")):
        with pytest.raises(gradscope.GradscopeError, match='make one with by="term"'):
            report.by_term()


def test_a_hook_that_changes_the_gradient_is_told(session: Session) -> None:
    text = START + NOTICING
    words = " ".join(session.told(text, "backward --by term").out.split())
    assert "the program changes gradients on their way, in a hook" in words
    without = str(session.write(text.replace("or 3 * g", "")))
    assert "in a hook" not in " ".join(session.cli("backward", without, "--by", "term").out.split())


# ---------------------------------------------------------------- its words

VAE_TOLD = START + VAE + "loss = mse + 100 * kl\nloss.backward()\n"


NORMED = """
x, y = torch.randn(8, 4), torch.randint(3, (8,))
model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))
out = model(x)
loss = F.cross_entropy(out, y) + out.pow(2).mean()
"""


@pytest.mark.parametrize(
    ("text", "by", "said", "unsaid"),
    [
        (NET + "loss = F.cross_entropy(out, y) + out.detach().mean() + 0 * out.mean()", "term",
         "0 * out.mean() brings 0 to every parameter", ""),
        (NET + "loss = F.cross_entropy(out, y) + 1e-4 * out.mean()", "term",
         "F.cross_entropy(out, y) brings >99 % of what reaches 2, 0", ""),
        (NET + "loss = out.pow(2).mean() - 0.9 * (out + 1e-3).pow(2).mean()", "term",
         "oppose each other in", ""),
        (NET + "loss = (out * torch.tensor([[40.0], [1], [1], [1], [1], [1]])).pow(2).sum()",
         "sample", "sample 0 brings", ""),
        (NET + "loss = (out * torch.tensor([[0.0], [1], [1], [1], [1], [1]])).pow(2).sum()",
         "sample", "1 sample of 6 brings 0", ""),
        (NET + "loss = out.pow(2).mean() + (out - out.detach()).abs().sqrt().mean()", "term",
         "(out - out.detach()).abs().sqrt().mean() brings NaN or infinity", ""),
        ("model = nn.BatchNorm1d(3)\nx = torch.randn(4, 3)\nout = model(nn.Linear(3, 3)(x))\n"
         "loss = out.pow(4).mean()", "sample", "samples mix at NativeBatchNorm (program.py:", ""),
        # What no number shows.
        (NET + "b = model[2].bias\nloss = out.mean() + (b - b.detach()).sqrt().sum()",
         "term", "brings NaN or infinity", " 0 %"),
        (NET + "h = 2 * out\nt = h.tanh()\nloss = t.pow(2).mean()", "h,t",
         "h alone (what comes through t is counted there) brings 0 to every parameter", "value"),
        (NORMED, "term --all", "0.bias", "oppose"),  # what arrives there is rounding
        (NET + "loss = (out * torch.tensor([0.0, 1, 1, 1, 1, 1])[:, None]).pow(2).sum()"
         " + 1e3 * model[0].weight.pow(2).sum()", "sample",
         "1 sample of 6 brings 0", "the rest brings"),
        (NET + "loss, other = F.cross_entropy(out, y), out.mean()\n"
         "torch.autograd.backward([loss, other])", "term", "loss, other", "F.cross"),
    ],
)  # fmt: skip
def test_what_stands_out_is_said(
    text: str, by: str, said: str, unsaid: str, session: Session
) -> None:
    program = f"{START}{textwrap.dedent(text)}\nloss.backward()\n"
    done = session.told(program, f"backward --width 200 --by {by}")
    assert said in done.out
    assert not unsaid or unsaid not in done.out


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--by", "term", "--steps", "2"), "--by takes the gradient of one backward call apart"),
        (("--by", "a +"), "--by a +: that is no list of names"),
        (("--by", "output:0"), "--by output:0: that is no list of names"),
        (("--by", "nosuch"), "no tensor called nosuch is on the way"),
        (
            ("--by", "term", "--root", "mse"),
            "mse is one term: no sum of several tensors is at the top",
        ),
        (
            ("--by", "term", "--let", "a=[1, 2]", "-c", "torch.tensor(2) / (a.sum() + a[0])"),
            "the root is one term: no sum of several",
        ),
        (
            ("--by", "sample", "--root", "model.mu.bias[0]"),
            "no rows of samples are seen where the loss is made",
        ),
        (("--by", "recon, recon, kl, kl.clone()"), "--by recon, recon, kl, kl.clone(): that is no"),
        (("--by", "sample:recon, mu"), "no tensor called recon, mu is on the way"),
        (("--by", "term", "--root", "recon"), "the root has shape [5, 6]"),
    ],
)
def test_what_cannot_be_asked_is_said(
    arguments: tuple[str, ...], what: str, session: Session
) -> None:
    program = () if "-c" in arguments else (str(session.write(VAE_TOLD)),)
    done = session.cli("backward", *program, *arguments)
    assert done.status == 2, done.out
    first, second = done.err.splitlines()[:2]
    assert first.startswith(f"gradscope: {what}")
    assert second.startswith("gradscope: ")


CLOSED = {
    "a checkpoint": """
from torch.utils.checkpoint import checkpoint
w = torch.randn(3, requires_grad=True)
h = checkpoint(lambda v: v.exp(), w, use_reentrant=False)
loss = h.sum() + h.pow(2).sum()
""",
    "a backward that could be noticed": f"""
seen = []
{function("Counted", "x * 2", "seen.append(1); grad * 2")}
w = torch.randn(3, requires_grad=True)
loss = Counted.apply(w).sum() + w.sum()
""",
}


@pytest.mark.parametrize("name", CLOSED)
def test_what_cannot_be_sent_alone_is_said(name: str, session: Session) -> None:
    path = str(session.write(f"{START}{CLOSED[name]}loss.backward()\nprint('ran')\n"))
    done = session.cli("backward", path, "--by", "term", "--run-on")
    assert (done.status, done.out) == (2, "ran\n")
    what, hint = done.err.splitlines()
    assert what.startswith("gradscope: no piece of the gradient can be sent alone: ")
    assert hint == "gradscope: leave --by out: the program's own backward call is shown then"


def text_of(report: Report) -> str:
    return " ".join(render(report, Options()).split())


def test_the_page_colours_boxes_by_the_share_of_each_term(session: Session) -> None:
    text = "import torch\na = torch.tensor([1.0, 2.0], requires_grad=True)\nh = a * 1\n"
    text += "s = h.sum()\nt = 4 * h.sum()\nloss = s + t\nloss.backward()\n"
    report = session.look(text, "--by", "term")
    page = as_text(report, "html")
    shares = {one["name"]: one for one in packed(page)["overlays"]}
    nodes = {node.variable: str(node.id) for node in report.graph.nodes if node.variable}
    told = [
        one["classes"][one["marks"][nodes["h"]]][0]
        for one in (shares["share of s"], shares["share of t"])
    ]
    assert told == ["10 to 50 %", "50 to 90 %"]
    # The other term reaches none of it, and where they are one sum nothing is said.
    assert nodes["s"] not in shares["share of t"]["marks"]
    assert nodes["loss"] not in shares["share of s"]["marks"]


def test_terms_whose_names_begin_alike_are_told_apart_on_the_page(session: Session) -> None:
    factor = "the_weight_of_a_penalty_with_a_long_name"
    text = f"import torch\na = torch.ones(2, requires_grad=True)\n{factor} = 2\n"
    text += f"loss = {factor} * a.square().sum() + {factor} * a.abs().sum()\nloss.backward()\n"
    shares = packed(as_text(session.look(text, "--by", "term"), "html"))["overlays"]
    names = [one["name"] for one in shares if one["name"].startswith("share of ")]
    assert [name[:11] for name in names] == ["share of 1 ", "share of 2 "]


@pytest.mark.parametrize("width", ["80", "100", "160"])
def test_a_tree_has_a_column_for_each_term(session: Session, width: str) -> None:
    text = "import torch\na = torch.tensor([3.0, 4.0], requires_grad=True)\nh = a * 1\n"
    text += "s = h.sum()\nt = (h * h).sum()\nloss = s + t\nloss.backward()\n"
    asked = f"backward --by term --format tree --width {width}"
    rows = session.told(text, asked).out.splitlines()
    assert "share of each term in what arrives, by norm" in " ".join(rows)
    titles = next(row for row in rows if row.startswith("node"))
    assert titles.split()[-2:] == ["s", "t"]
    # 1 and 2h, whose norms are √2 and 10.
    share = round(100 * 2**0.5 / (2**0.5 + 10))
    for name in ("h = a * 1", "● a"):
        row = next(row for row in rows if name in row)
        assert row.split()[-4:] == [str(share), "%", str(100 - share), "%"], row
    (root,) = (row for row in rows if "loss = s + t" in row)
    assert "%" not in root  # where they are one sum nothing is said
    assert max(map(len, rows)) <= int(width)
