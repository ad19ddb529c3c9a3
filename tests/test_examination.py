"""What a doctor observes of a run, case by case; and that the run is none the wiser."""

from __future__ import annotations

import itertools
import re

import msgspec
import pytest
import torch
from torch import nn

from gradscope.autograd.summary import measure, metadata
from gradscope.model.observations import Observations
from gradscope.model.report import Report
from tests.looking import Session

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""


def examined(session: Session, text: str, *options: str) -> Report:
    """The report of a doctor's look at the whole run of a program."""
    options = options or ("--steps", "all", "--keep-going")
    return session.overheard(HEAD + text, *options)


def seen(report: Report) -> Observations:
    """What the rules were shown."""
    assert isinstance(report.observations, Observations)
    return report.observations


def text_at(report: Report, origin: int | None) -> str:
    """The expression of a place, "" where none is known."""
    return "" if origin is None else report.graph.origins[origin].expression


# ---------------------------------------------------------------- cuts


CUTS = {
    "c = h.detach()": "detach function graph: h.detach()",
    "c = h.detach_()": "detach_ function graph: h.detach_()",
    "c = torch.autograd.Variable(h)": "Variable function graph: torch.autograd.Variable(h)",
    "c = h.data": "data function graph: h.data",
    "c = h.sum().item()": "item function: h.sum().item()",
    "c = float(h.sum())": "float function: float(h.sum())",
    "c = h.detach().numpy().sum()": "detach function: h.detach()",
    "c = torch.tensor(h.tolist())": "tolist function graph: h.tolist()",
    "c = torch.tensor([e for e in h.unbind()])": "tensor function graph: torch.tensor([e for e in "
    "h.unbind()])",
    "c = h.argmax()": "argmax function graph: h.argmax()",
    "c = (h > 1).float()": "gt function graph: h > 1",
    "c = h.long()": "long function graph: h.long()",
    "c = h.sort()[1]": "sort function graph: h.sort()",
    "c = torch.isclose(h, h)": "isclose function graph: torch.isclose(h, h)",
    "with torch.no_grad(): c = h * 3": "mul no_grad graph: h * 3",
    "c = torch.no_grad()(lambda: h * 3)()": "mul no_grad graph: h * 3",
    "with torch.inference_mode(): c = float((h * 3).sum())": "mul inference_mode: h * 3",
    # Numbers that come back from a list; what becomes of an array of numpy's is not known.
    "c = torch.from_numpy(np.sin(h.detach().numpy()))": "detach function: h.detach()",
    "c = torch.zeros(3); c.data[:2] = h[:2]": "data function graph: c.data[:2] = h[:2]",
    "c = sum(r for r in torch.from_numpy(h.detach().numpy()))": "detach function: h.detach()",
    "c = torch.tensor([1.0, h.sum().item()])": "item function graph: h.sum().item()",
    "c = float(np.isfinite(h.detach().numpy()).all())": "detach function: h.detach()",
    # What only asks for a shape is none.
    **dict.fromkeys(
        (
            *("c = torch.zeros_like(h)", "c = h.new_ones(3)", "c = h.shape[0]", "c = h * 2"),
            *("c = h.size(0) + h.dim() + h.numel()", "c = len(str(h.shape))", "c = len(h)"),
            *("w.grad; c = h", "c = torch.broadcast_tensors(h, torch.ones(1))[1]"),
        ),
        "",
    ),
}
"""Lines, given a leaf ``w`` and ``h = w * 2``, and the cut each makes: what cuts, why, whether its
result feeds the graph, and where."""


def test_a_cut_is_seen_with_its_line_and_what_lies_behind(session: Session) -> None:
    def own(text: str, at: int) -> str:
        return re.sub(r"\b[cehvw]\b", rf"\g<0>{at}", text)

    parts = [
        "w, v = (torch.ones(3, requires_grad=True) for _ in range(2)); h = w * 2\n"
        f"{line}\nloss += (v.sum() * c).sum()\n"
        for line in CUTS
    ]
    text = "".join(own(part, at) for at, part in enumerate(parts))
    report = examined(session, f"import numpy as np\nloss = 0\n{text}loss.backward()\n")
    for at, expected in enumerate(CUTS.values()):
        told = [
            f"{cut.function} {cut.reason}{' graph' * cut.feeds_graph}: "
            + text_at(report, cut.origin)
            for cut in seen(report).cuts
            if own("w", at) in cut.leaves
        ]
        assert told == [own(expected, at)] * bool(expected)


def test_a_module_that_no_other_holds_is_known_as_such(session: Session) -> None:
    text = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.held, self.plain = nn.Linear(3, 3), [nn.Linear(3, 3)]
    def forward(self, x):
        return self.plain[0](self.held(x))
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(2, 3)).sum().backward()
"""
    known = {one.name: one for one in seen(examined(session, text)).learners}
    assert [known[f"{name}.weight"].loose for name in ("held", "plain[0]")] == [False, True]
    assert known["plain[0].weight"].in_optimizer is False


# ---------------------------------------------------------------- values


FUSED = {
    "gru": "out, _ = nn.GRU(3, 5)(bad(6, 4, 3))",
    "gru, batch first": "out, _ = nn.GRU(3, 5, batch_first=True)(bad(6, 4, 3))",
    "lstm": "out, _ = nn.LSTM(3, 5, num_layers=2)(bad(6, 4, 3))",
    "first state": "out, _ = nn.RNN(3, 5)(torch.randn(6, 4, 3), bad(1, 4, 5))",
    "attention": "out, _ = nn.MultiheadAttention(4, 2)(x := torch.randn(5, 2, 4), x, bad(5, 2, 4))",
    "sdpa": "out = F.scaled_dot_product_attention(*[w.expand(2, 5, 4)] * 2, bad(2, 5, 4))",
    "fused sdpa": "out = F.scaled_dot_product_attention("
    "*[w.expand(1, 2, 5, 4)] * 2, bad(1, 2, 5, 4))",
    "convolution": "out = nn.Conv1d(3, 2, 2)(bad(4, 3, 6))",
    "batch norm": "out = nn.BatchNorm1d(3)(bad(8, 3))",
    "embedding bag": "out = nn.EmbeddingBag(9, 4, mode='sum')("
    "torch.arange(8).view(2, 4), per_sample_weights=bad(2, 4))",
    "einsum": "out = torch.einsum('i,ij->j', w[0], bad(4, 3))",
    "bilinear": "out = nn.Bilinear(3, 4, 2)(torch.randn(5, 3), bad(5, 4))",
}
"""Calls of many nodes, or of one that does much, of which one operand is not finite."""


# Of one call the one, of the next the other.
@pytest.mark.parametrize(("number", "name"), [*zip(itertools.cycle(("inf", "nan")), FUSED)])
def test_all_operands_of_a_call_are_asked(name: str, number: str, session: Session) -> None:
    report = examined(
        session,
        f"""
def bad(*shape):
    data = torch.randn(*shape)
    data.view(-1)[1] = float("{number}")
    return data
w = nn.Parameter(torch.randn(1, 4))
{FUSED[name]}
torch.tanh(out).sum().backward()
""",
    )
    assert [finding.rule for finding in report.findings] == ["GS105"], report.findings


def test_a_change_in_place_by_the_call_that_saved_is_no_change(session: Session) -> None:
    for activate in ("F.relu(w * 2, inplace=True)", "torch.sigmoid_(w * 2)", "(w * 2).tanh_()"):
        report = examined(
            session,
            f"""
w = torch.ones(3, requires_grad=True)
h = {activate}
h += 1
try:
    h.sum().backward()
except RuntimeError:
    pass
""",
        )
        (change,) = seen(report).changes
        assert text_at(report, change.origin) == "h += 1"


@pytest.mark.parametrize("dtype", ["complex64", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("size", [3, 20])
def test_the_rows_of_nan_are_read_in_every_dtype(size: int, dtype: str) -> None:
    gradient = torch.ones(4, size)
    gradient[2, 1] = torch.nan
    assert str(measure(gradient.to(getattr(torch, dtype))).rows) == "row 2 of 4"


def test_a_layout_is_written_only_where_it_is_not_strided() -> None:
    assert b"layout" not in msgspec.json.encode(metadata(torch.ones(2)))
    assert b'"layout":"sparse_coo"' in msgspec.json.encode(metadata(torch.ones(2).to_sparse()))


@pytest.mark.parametrize("dtype", ["complex32", "float8_e4m3fn", "float8_e5m2"])
def test_dtypes_without_sums_are_followed(dtype: str, session: Session) -> None:
    report = examined(
        session,
        f"""
x = torch.randn(20, requires_grad=True)
y = x.to(torch.{dtype})
y.to(torch.complex64).abs().sum().backward()
""",
    )
    assert report.notes == ()
    assert seen(report).watched == 1


# ---------------------------------------------------------------- changes


UNCHANGED = [
    "x = torch.relu_(w * 1)",
    "x = w * w; other = torch.zeros(3); other += 1",
    "buffer = torch.zeros(6); x = w * buffer[:3]; buffer.data[3:] = 1",
    "buffer = torch.zeros(3); buffer += 1; x = w * buffer",
]


@pytest.mark.parametrize("lines", UNCHANGED)
def test_what_was_not_changed_after_it_was_saved(lines: str, session: Session) -> None:
    body = "\n".join(lines.split("; "))
    text = f"w = torch.ones(3, requires_grad=True)\n{body}\nx.sum().backward()"
    assert seen(examined(session, text)).changes == ()


# ---------------------------------------------------------------- loops

LOOP = """
def grads(net):
    for p in net.parameters():
        p.grad = torch.ones_like(p)

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for step in range(4):
    {before}
    loss = net(torch.ones(2, 3)).sum()
    loss.backward()
    {after}
"""

LOOPS = {
    ("", "optimizer.step()"): [2, 2, 2],
    ("optimizer.zero_grad()", "optimizer.step()"): [0, 0, 0],
    ("optimizer.zero_grad(set_to_none=False)", "optimizer.step()"): [0, 0, 0],
    ("", "optimizer.step(); optimizer.zero_grad()"): [0, 0, 0],
    ("", "step % 2 and (optimizer.step(), optimizer.zero_grad())"): [0, 0, 0],
    ("", "step or optimizer.step(); net.load_state_dict(net.state_dict())"): [0, 0, 0],
    ("", "grads(net); optimizer.step()"): [0, 0, 0],
}


@pytest.mark.parametrize("lines", LOOPS, ids=" | ".join)
def test_gradients_that_are_used_twice(lines: tuple[str, str], session: Session) -> None:
    before, after = lines
    report = examined(session, LOOP.format(before=before or "pass", after=after))
    assert [step.reused for step in seen(report).steps][1:] == LOOPS[lines]


# ---------------------------------------------------------------- the rest


def test_hooks(session: Session) -> None:
    report = examined(
        session,
        """
w = torch.ones(4, requires_grad=True)
h = w * 3
h.register_hook(lambda grad: print("seen"))
k = h * 1
k.register_hook(lambda grad: -grad)
k.sum().backward()
""",
    )
    found = [(one.function, text_at(report, one.origin)) for one in seen(report).alterations]
    assert found == [("register_hook", "k.register_hook(lambda grad: -grad)")]


def test_activations_that_pass_nothing(session: Session) -> None:
    report = examined(
        session,
        """
w = torch.ones(16, 4, requires_grad=True)
shift = torch.tensor([-5.0, 5.0, -5.0, 5.0])
a = torch.relu(w + shift)
b = torch.sigmoid(w * 100)
c = torch.softmax(w * torch.tensor([0.0, 1000.0, 0.0, 0.0]), dim=-1)
(a.sum() + b.sum() + c.sum() + torch.softmax(w.sum(), 0)).backward()
""",
    )
    found = {
        report.graph.nodes[one.node].op: (one.dead, one.saturated)
        for one in seen(report).activities
    }
    assert found == {
        "ReluBackward0": (0.5, 0.0),
        "SigmoidBackward0": (0.0, 1.0),
        "SoftmaxBackward0": (0.0, 1.0),
    }


# ---------------------------------------------------------------- what a step is made of


@pytest.mark.parametrize("how", ["returns", "raises"])
def test_parameters_are_made_as_before_when_the_doctor_has_gone(how: str, session: Session) -> None:
    before = vars(nn.Parameter)["__new__"]
    end = "raise ValueError" if how == "raises" else ""
    session.cli("doctor", str(session.write(f"{HEAD}w = nn.Parameter(torch.ones(2))\n{end}")), "-q")
    assert vars(nn.Parameter)["__new__"] is before


KEPT = """
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = []
for _ in range(6):
    loss = model(torch.randn(4, 3)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rows.append({"loss": LOSS})
"""


@pytest.mark.parametrize(
    ("loss", "told"), [("loss", ["rows"]), ("loss.detach()", []), ("loss.item()", [])]
)
def test_a_container_that_keeps_graphs_is_found(
    loss: str, told: list[str], session: Session
) -> None:
    report = examined(session, KEPT.replace("LOSS", loss))
    assert [one.variable for one in seen(report).carried if one.is_container] == told


@pytest.mark.parametrize(
    ("sums", "told"),
    [
        ("total = total + loss", [("total", 4)]),
        ("rows.total = rows.total + 0.1 * loss", [("rows.total", 4)]),
        ("state = model(torch.randn(4, 3) * state.detach()).mean()", []),
        ("total = loss + model(torch.randn(4, 3)).mean()", []),
        ("losses = [*losses[-2:], loss]", []),
        # Of two that one call gives, the one that it takes again.
        ("gone, state = torch.aminmax(loss + state)", [("state", 4)]),
    ],
)
def test_a_variable_that_carries_its_history_is_found(
    sums: str, told: list[tuple[str, int]], session: Session
) -> None:
    before = "from types import SimpleNamespace\nrows = SimpleNamespace(total=0.0)\n"
    start = f"{before}total, state, losses = 0.0, torch.ones(1), []\n"
    text = start + KEPT.replace("rows = []", "").replace('rows.append({"loss": LOSS})', sums)
    found = seen(examined(session, text)).carried
    assert [(one.variable, one.steps) for one in found] == told


def test_calls_of_grad_are_a_part_of_a_step(session: Session) -> None:
    report = examined(
        session,
        """
w = nn.Parameter(torch.ones(3))
for _ in range(9):
    x = w
    for _ in range(3):
        (step,) = torch.autograd.grad(x.pow(2).sum(), x)
        x = x - 0.1 * step
    x.sum().backward()
""",
        "--steps",
        "2",
    )
    assert [step.accumulates for step in seen(report).steps] == [False, False, False, True] * 2


def test_a_change_of_dtype_by_type_has_its_place(session: Session) -> None:
    report = examined(
        session, "x = torch.ones(3, requires_grad=True)\nx.type(torch.float64).sum().backward()\n"
    )
    places = [text_at(report, node.origin) for node in report.graph.nodes]
    assert "x.type(torch.float64)" in places
