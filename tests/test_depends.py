"""What depends on what: every number against torch by hand, the verdicts, and what is refused."""

from __future__ import annotations

import runpy
import textwrap
from dataclasses import dataclass
from typing import Any

import pytest
import torch

import gradscope
from gradscope.errors import GradscopeError
from gradscope.model.report import Report
from gradscope.model.studies import Dependence
from gradscope.render.answers.depends import render
from gradscope.render.options import Options
from tests.conftest import process_preserved
from tests.looking import Session
from tests.own_functions import function
from tests.test_split import NOTICING
from tests.test_unchanged import alone

START = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(4, 6, 6, requires_grad=True)
mask = torch.ones(6, 6, dtype=torch.bool)

def attention(h, hidden):
    scores = (h @ h.transpose(1, 2)).masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, -1) @ h  # mixed

"""


@dataclass(frozen=True)
class Program:
    """A program that makes ``out`` of ``x``, with what is said of it, and how many of its lines
    end with a comment that says so."""

    name: str
    text: str
    verdict: str
    axis: str = "1"
    crossing: str = ""
    exact: bool = True
    more: str = ""

    @property
    def source(self) -> str:
        return START + textwrap.dedent(self.text).strip("\n") + "\nloss = out.abs().sum()\n"


LATER = "out[:, {}] depends on x[:, {}] (‖g‖ "
EVERY = "each out[{}] sends a gradient to every x[{}]; most of all at another index: out["
CAUSAL = "each out[:, i] sends a gradient to no later x[:, j], only to x[:, i] and earlier ones"
OWN = "each out[{0}] sends a gradient to x[{0}] alone"

PROGRAMS = (
    Program("each row alone", "out = nn.Linear(6, 6)(x)", OWN.format("i"), "0"),
    Program("each step alone", "out = nn.LayerNorm(6)(x)", OWN.format(":, i")),
    Program(
        "a view that mixes the batch",
        "h = x * 2\nh = h.view(6, 4, 6)  # mixed\nout = nn.Linear(6, 5)(h).transpose(0, 1)",
        EVERY.format("i", "j"),
        "0",
        "View",
    ),
    Program(
        "batch norm in training",
        "out = nn.BatchNorm1d(6)(x)  # mixed",
        EVERY.format("i", "j"),
        "0",
        "NativeBatchNorm",
    ),
    Program("a causal mask", "out = attention(x, mask.triu(1))", CAUSAL, crossing="Bmm"),
    Program(
        "a causal mask that is off by one",
        "out = x + attention(F.layer_norm(x, (6,)), mask.triu(2))",
        LATER.format(0, 1),
        crossing="Bmm",
        more="as 5 of 6 do, up to 1 later",
    ),
    Program(
        "a causal layer above one that is not",
        "h = x.flip(1).cumsum(1).flip(1)  # mixed\nout = h.cumsum(1)",
        EVERY.format(":, i", ":, j"),
        crossing="Flip",
    ),
    Program(
        "an RNN forward",
        "rnn = nn.GRU(6, 6, batch_first=True)\nout = rnn(x)[0]  # mixed",
        CAUSAL,
        crossing="Stack",
        exact=False,
    ),
    Program(
        "a convolution with steps",
        "conv = nn.Conv1d(6, 2, 2, stride=2)\nout = conv(x.transpose(1, 2)[..., :5])",
        "each out[:, :, i] sends a gradient to at most 2 x[:, j] of 6: out[:, :, 0] to x[:, 0:2], "
        "out[:, :, 1] to x[:, 2:4]",
        "2,1",
        more="no gradient comes to x[:, 4:6]; to each other x[:, j] a gradient does",
    ),
    Program("what is detached", "out = x * 2 + x.detach().flip(0)", OWN.format("i"), "0"),
    Program(
        "some of many",
        "out = (x[0] * 2).flatten()[:5]",
        "each out[i] sends a gradient to at most 1 x[j] of 4, such as out[0] to x[0], out[1] to "
        "x[0], out[2] to x[0] no gradient",
        "0",
    ),
    Program(
        "earlier ones alone",
        "out = torch.cat([torch.zeros(4, 1, 6), x[:, :5].cumsum(1)], 1)  # mixed",
        "each other out[:, i] sends a gradient to no later x[:, j], only to earlier ones",
        crossing="Cat",
        exact=False,
        more="no gradient comes to x from out[:, 0]",
    ),
    Program(
        "later ones alone",
        "out = torch.cat([x[:, 1:], torch.zeros(4, 1, 6)], 1)  # mixed",
        LATER.format(0, 1),
        crossing="Cat",
        exact=False,
        more="none sends one to an earlier one",
    ),
    Program("equal weights would cancel", "out = torch.softmax(x, 2)", OWN.format(":, i")),
    Program(
        "what only rounding is left of",
        "out = torch.softmax(x + x.roll(1, 1).sum(2, keepdim=True), 2)",
        OWN.format(":, i"),
        more="may be rounding: it is not counted as a gradient",
    ),
    Program(
        "nothing but rounding",
        "out = F.layer_norm(x, (6,)).mean(2)",
        "nothing but what is marked ~ comes to x from out[:, 0:6]",
    ),
    Program("nothing", "out = torch.sign(x)", "no gradient comes to x from out[:, 0:6]"),
)


def lines(program: Program) -> list[int]:
    """The numbers of the lines that are marked as those at which indices come together."""
    text = program.source.lstrip("\n")
    marked = [n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# mixed")]
    return [line for line in marked if line > 11] or marked


def dependence_of(report: Report) -> Dependence:
    assert report.dependence is not None
    return report.dependence


def text_of(report: Report, **options: Any) -> str:
    return " ".join(render(report, Options(**options)).split())


def weights(like: torch.Tensor) -> torch.Tensor:
    """The numbers that are sent, as the documentation has them."""
    shape = (*like.shape, 2) if like.is_complex() else like.shape
    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(0)) - 0.5
    drawn = torch.where(drawn < 0, drawn - 0.5, drawn + 0.5)
    return (torch.view_as_complex(drawn) if like.is_complex() else drawn).to(like.dtype)


def by_hand(of: torch.Tensor, on: torch.Tensor, axes: tuple[int, int]) -> list[list[float]]:
    """The same norms, each row by a backward pass of torch's own."""
    whole = weights(of)
    found = []
    for row in range(of.shape[axes[0]]):
        alone = torch.zeros_like(whole)
        alone.select(axes[0], row).copy_(whole.select(axes[0], row))
        (brought,) = torch.autograd.grad(of, on, alone, retain_graph=True, allow_unused=True)
        brought = torch.zeros_like(on) if brought is None else brought
        parts = brought.movedim(axes[1], 0).flatten(1)
        found.append([part.double().norm().item() for part in parts])
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_it_measures_what_torch_says_and_tells_it(program: Program, session: Session) -> None:
    asked = ("--of", "out", "--on", "x", "--axis", program.axis)
    report = session.look(program.source, *asked, command="depends")
    found = dependence_of(report)
    namespace = runpy.run_path(str(session.folder / "program.py"))
    axes = tuple(map(int, program.axis.split(",")))
    expected = by_hand(namespace["out"], namespace["x"], (axes[0], axes[-1]))
    assert found.rows == tuple(range(len(expected)))
    for row, norms in zip(expected, found.norms, strict=True):
        assert [*map(float, norms)] == pytest.approx(row, rel=1e-4, abs=1e-6 * max(row))
    told = text_of(report, width=1000)
    assert program.verdict in told
    assert program.more in told
    assert (found.crossing is not None) == bool(program.crossing), told
    if found.crossing is not None:
        node = report.graph.nodes[found.crossing.node]
        origin = report.graph.origin_of(node)
        assert node.short_op.startswith(program.crossing)
        assert found.crossing.exact == program.exact
        assert origin is not None
        assert origin.line in lines(program)
        words = "indices at" if program.exact else "index at the result of"
        assert f"{words} {node.short_op} (program.py:{origin.line})" in told


PADDED = (
    START
    + """
lengths = torch.tensor([4, 3, 2, 4])
padding = torch.arange(6)[None] >= lengths[:, None]
emb = x * 1
out = attention(emb, padding[:, None, :])
loss = (out * ~padding[:, :, None]).pow(2).mean()
"""
)


def test_what_is_padded_is_told_by_what_arrives(session: Session) -> None:
    told = text_of(session.look(PADDED, "--on", "emb", "--axis", "1", command="depends"))
    assert "does loss [] depend on emb [4,6,6]? · axis 1" in told
    assert "loss sends a gradient to 4 of 6 emb[:, j]" in told
    assert "no gradient comes to emb[:, 4:6]; to each other emb[:, j] a gradient does" in told
    text = PADDED.replace("padding[:, None, :]", "padding[:, None, :] & False")
    told = text_of(session.look(text, "--on", "emb", "--axis", "1", command="depends"))
    assert "loss sends a gradient to every emb[:, j]" in told
    text = "import torch\nx = torch.ones(20, requires_grad=True)\nloss = x[::3].sum()\n"
    told = text_of(session.look(text, "--on", "x", command="depends"))
    assert "no gradient comes to x[1:3], x[4:6], x[7:9], x[10:12] and 5 more indices;" in told


@pytest.mark.parametrize(
    ("shapes", "arguments", "said"),
    [
        ("(4, 6, 6)", (), "axis 0, the first that fits (--axis N chooses)"),
        ("(4, 6, 6)", ("--axis", "-1"), "axis 2"),
        ("(4, 6, 6)", ("--axis", "1,2"), "axes 1 and 2"),
        ("(1, 6, 6)", (), "axis 1, the first that fits (--axis N chooses)"),
        ("(2, 4)", (), "axes 1 and 0, the first that fits (--axis N chooses)"),
    ],
)
def test_the_axes_are_said(
    shapes: str, arguments: tuple[str, ...], said: str, session: Session
) -> None:
    text = START + f"out = x.sum() * torch.ones({shapes})\nloss = out.sum()\n"
    text = text.replace("(4, 6, 6, req", "(1, 6, 6, req") if shapes[1] == "1" else text
    report = session.look(text, "--of", "out", "--on", "x", *arguments, command="depends")
    assert text_of(report, width=200).split(" · ")[2].startswith(said)


@pytest.mark.parametrize(
    ("text", "arguments", "what", "hint"),
    [
        ("", ("--of", "h"), "depends needs a tensor that another may depend on", "--on NAME"),
        ("", ("--of", "h", "--on", "nil"), "no tensor called nil is on the way", "nearest first"),
        ("", ("--on", "x", "-o", "x.svg"), "svg has no place for what depends tells", ".html hold"),
        ("", ("--of", "x", "--on", "x"), "x and x are one tensor", "the first made of the second"),
        ("", ("--of", "x", "--on", "h"), "x cannot depend on h, which is made", "--of h --on x"),
        ("", ("--of", "h", "--on", "x", "--axis", "3"), "h [4, 6, 2] has no axis 3", "--axis 0,1"),
        ("", ("--of", "h", "--on", "x", "--axis", "-4"), "h [4, 6, 2] has no axis -4", "--axis"),
        ("", ("--of", "h", "--on", "x", "--axis", "a"), "'a' is neither an axis nor two", "write"),
        ("", ("--of", "h", "--on", "n.bias"), "", ""),
        (
            "",
            ("--of", "loss", "--on", "h", "--axis", "1,2"),
            "",
            "loss sends a gradient to every h[:, :, j]",
        ),
        ("", ("--of", "h", "--on", "s"), "s is one number, without an axis", "that has one"),
        (
            "lost = torch.ones(3)\n",
            ("--on", "lost"),
            "lost carries no",
            "name one on the way to it;",
        ),
        ("h = t.detach().exp() * k.sum()\n", ("--on", "h"), "what h is now is not on", '"#1"'),
        (
            "p = torch.nested.nested_tensor([x[0], x[1, :2]], requires_grad=True)\n"
            "t = torch.nested.to_padded_tensor(p, 0.0)\n",
            ("--on", "p"),
            "p has no elements along an axis",
            "name another tensor",
        ),
        (
            "for _ in range(12):\n    h = h * 2\nt, h = h, 0\n",
            ("--on", "h"),
            "13 tensors were called h",
            'and 5 more, the first made "#13" (the numbers behind # in the tree)',
        ),
        ("", ("--of", "h", "--on", "k"), "h [4, 6, 2] and k [3] have no axis of one size", "0,1"),
        (
            "",
            ("--of", "h", "--on", "plain"),
            "plain carries no gradient history",
            '" (n(plain)); or let the program call plain.requires_grad_()',
        ),
        ("", ("--of", "h", "--on", "ids"), "ids carries no gradient history", '" (e(ids))\n'),
        (
            "from torch.utils.checkpoint import checkpoint\n"
            "t = checkpoint(torch.sin, h * 2, use_reentrant=False) + 1\n",
            ("--of", "t", "--on", "x"),
            "no gradient can be sent alone: ",
            "choose --of and --on with nothing of the kind between",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(
    text: str, arguments: tuple[str, ...], what: str, hint: str, session: Session
) -> None:
    source = START + "n, e = nn.Linear(6, 2), nn.Embedding(6, 2)\nplain = torch.randn(4, 6, 6)\n"
    source += "k, ids = torch.zeros(3, requires_grad=True), torch.zeros(4, 6, dtype=torch.long)\n"
    source += "h = e(ids) + n(plain) + n(x) * (s := k.sum())\n"
    loss = "loss = t.sum()\nloss.backward()\n"
    done = session.told(source + "t = h\n" + text + loss, "depends", *arguments)
    if not what:
        assert done.status == 0
        assert (hint or "each h[:, :, i] sends a gradient to n.bias[i] alone") in done.out
        return
    assert done.status == 2
    assert what in done.err
    assert hint in done.err


def test_what_no_way_leads_to_gets_nothing(session: Session) -> None:
    text = START + "out, other = x * 2, x * 3\nloss = (out + other).sum()\n"
    report = session.look(text, "--of", "out", "--on", "other", command="depends")
    assert "no gradient comes to other from out[0:4]" in text_of(report)
    assert {*dependence_of(report).norms} == {(0.0,) * 4}


def test_rows_that_are_not_finite_are_told_for_themselves(session: Session) -> None:
    text = START + "scale = torch.ones(4, 1, 1)\nscale[2] = torch.nan\nout = x * scale\n"
    text += "loss = out.sum()\n"
    report = session.look(text, "--of", "out", "--on", "x", command="depends")
    told = text_of(report)
    assert "NaN or infinity comes to x[2] from out[0:4]" in told  # 0 times NaN, too
    assert "where it is finite, each out[i] sends a gradient to x[i] alone" in told
    assert "1 ··██✖✖··" in told
    assert "1 ..##!!.." in text_of(report, unicode=False)


def test_few_digits_hide_no_index(session: Session) -> None:
    text = START + "b = x.detach().bfloat16().requires_grad_()\n"
    text += "out = b + attention(b, mask.triu(2)) / 500\nloss = out.float().sum()\n"
    report = session.look(text, "--of", "out", "--on", "b", "--axis", "1", command="depends")
    assert "out[:, 0] depends on b[:, 1]" in text_of(report)
    assert "as 5 of 6 do, up to 1 later" in text_of(report)


def test_a_backward_that_is_not_linear_is_not_called_rounding(session: Session) -> None:
    limited = function("Limited", "x * 1", "grad.clamp(-0.01, 0.01)")
    text = f"{START}{limited}out = Limited.apply(x)\nloss = out.sum()\n"
    report = session.look(text, "--of", "out", "--on", "x", command="depends")
    assert "each out[i] sends a gradient to x[i] alone" in text_of(report)


def test_many_indices_are_sampled_and_that_is_said(session: Session) -> None:
    text = START + "long = torch.randn(300, requires_grad=True)\nout = long.cumsum(0)\n"
    arguments = ("--of", "out", "--on", "long")
    report = session.look(text + "loss = out.sum()\n", *arguments, command="depends")
    found = dependence_of(report)
    assert len(found.rows) == 64
    assert (found.rows[0], found.rows[-1], len(found.norms[0])) == (0, 299, 300)
    told = text_of(report)
    assert "asked at 64 of 300 indices, evenly spread" in told
    assert "each out[i] that was asked sends a gradient to no later long[j]" in told
    assert "a cell is the largest of up to 5 indices" in told
    assert "32 of 64 rows: --all" in told
    assert text_of(report, width=40).count("█") > 100  # it fits there, too


# ---------------------------------------------------------------- nothing of it is noticed


def test_nothing_changes_and_no_hook_runs(session: Session) -> None:
    path = str(session.write(START + NOTICING))
    arguments = ("--of", "out", "--on", "h", "--run-on", "-q", "-o", "told.json")
    plain, done = alone(path), session.cli("depends", path, *arguments)
    assert done.status == 0, done.err
    assert done.out == plain


def test_from_python_nothing_changes_either() -> None:
    namespace: dict[str, Any] = {}
    with process_preserved():
        exec(compile(PROGRAMS[5].source, "program.py", "exec"), namespace)
        out, x, state = namespace["out"], namespace["x"], torch.get_rng_state()
        version = x._version
        report = gradscope.depends(out, "x", axis=1)
        assert torch.equal(state, torch.get_rng_state())
        assert (x.grad, x._version) == (None, version)
        assert dependence_of(report).of.name == "out"
        assert "out[:, 0] depends on x[:, 1]" in " ".join(str(report).split())
        assert dependence_of(gradscope.depends(out, "x")).of.axis == 0
        with pytest.raises(TypeError, match="one axis, or a tuple of two, not 'b'"):
            gradscope.depends(out, "x", axis="b")  # type: ignore[arg-type]
        with pytest.raises(GradscopeError, match="has no axis 7"):
            gradscope.depends(out, "x", axis=(0, 7))
        namespace["loss"].backward()  # its buffers are there
