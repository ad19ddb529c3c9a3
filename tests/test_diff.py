"""``gradscope diff``: equal programs are equal, and the first difference told is the one made."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gradscope.analyses.diff import compare
from gradscope.analyses.diff.comparison import Tolerance
from gradscope.analyses.diff.union import union
from gradscope.model import storage
from gradscope.model.invariants import check
from gradscope.model.report import Report
from gradscope.render.words.numbers import number
from tests import forkserver, reports
from tests.looking import Session


@pytest.fixture(autouse=True)
def _programs_run_in_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """``gradscope diff`` runs each of its programs in a python of its own."""
    monkeypatch.setattr(sys, "executable", forkserver.python())


MLP = """
import torch
from torch import nn

torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)
        self.drop = nn.Dropout(0.1)
    def forward(self, x):
        h = torch.tanh(self.fc1(x))
        h = self.drop(h)
        h = torch.relu(self.fc2(h)) + h
        return self.fc3(h)
net = Net()
print("made")
x = torch.randn(5, 8)
loss = net(x).square().mean()
loss.backward()
"""

TRANSFORMER = """
import torch
from torch import nn

torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.proj = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)
        self.drop = nn.Dropout(0.2)
    def forward(self, x):
        q, k, v = self.qkv(self.ln_1(x)).chunk(3, -1)
        weights = (q @ k.transpose(-2, -1)).softmax(-1)
        x = x + self.drop(self.proj(weights @ v))
        hidden = torch.relu(self.up(self.ln_2(x)))
        return x + self.drop(self.down(hidden))
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 16)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(16, 11)
    def forward(self, idx):
        x = self.table(idx)
        for block in self.blocks:
            x = block(x)
        return self.head(x)
model = Model()
idx = torch.randint(11, (2, 6))
loss = nn.functional.cross_entropy(model(idx).flatten(0, 1), idx.flatten())
loss.backward()
"""

EDITS = {
    "dropout off": (
        (MLP, "h = self.drop(h)", "pass"),
        ["MulBackward0 of self.drop(h)", "only in A"],
    ),
    "a layer's values": (
        (MLP, "x = torch.randn(5, 8)", "x = torch.randn(5, 8); net.fc2.weight.data[0, 0] += 1"),
        ["in the values of fc2.weight, before any gradient flowed"],
    ),
    "detach where another way stays": (
        (MLP, "self.fc2(h)", "self.fc2(h.detach())"),
        ["an edge to MulBackward0 of self.drop(h)", "only in A", "self.fc2(h.detach())"],
    ),
    "another activation": (
        (MLP, "torch.relu", "torch.sigmoid"),
        ["at ReluBackward0 of torch.relu(self.fc2(h))", "SigmoidBackward0 instead of Relu"],
    ),
    "another gradient": (
        (MLP, "loss.backward()", "loss.backward(torch.tensor(2.0))"),
        ["the first gradient that differs, in backward order: given at MeanBackward0"],
    ),
}


def both(session: Session, a: str, b: str, *options: str) -> tuple[str, str]:
    """Two saved reports, made in this process, which is quicker than what ``diff`` does itself."""
    for name, program in (("a", a), ("b", b)):
        path = str(session.write(program, f"{name}.py"))
        done = session.cli("backward", path, "-o", f"{name}.json", *options)
        assert done.status == 0, done.err
    return "a.json", "b.json"


def first_told(out: str) -> str:
    """The paragraph on where the two part, on one line."""
    return " ".join(out.partition("first difference\n")[2].partition("\n\n")[0].split())


def test_the_same_program_twice_is_identical(session: Session) -> None:
    path = str(session.write(TRANSFORMER))
    done = session.cli("diff", path, path)
    assert done.status == 0, done.err
    assert done.out.splitlines()[2].startswith("identical: ")
    assert "part first" not in done.out


@pytest.mark.parametrize("name", EDITS)
def test_the_first_difference_is_the_one_that_was_made(name: str, session: Session) -> None:
    (program, old, new), words = EDITS[name]
    assert old in program
    done = session.cli("diff", *both(session, program, program.replace(old, new)))
    assert done.status == 1, done.err
    assert done.out.splitlines()[2].startswith("different: ")
    told = first_told(done.out)
    for part in words:
        assert part in told
    assert told.startswith(words[0])


def found(session: Session, *arguments: str) -> dict[str, Any]:
    done = session.cli("diff", *arguments, "--format", "json")
    result = json.loads(done.out)
    assert isinstance(result, dict)
    assert (done.status == 1) == (result["verdict"] in ("different", "unrelated"))
    return result


def test_several_changes_leave_the_rest_matched(session: Session) -> None:
    changed = TRANSFORMER.replace("self.drop(self.proj(weights @ v))", "self.proj(weights @ v)")
    changed = changed.replace("torch.relu(self.up", "torch.tanh(self.up")
    result = found(session, *both(session, TRANSFORMER, changed))
    kinds = [(change["what"], change["a"]["expression"]) for change in result["changes"]]
    assert kinds.count(("removed", "self.drop(self.proj(weights @ v))")) == 3
    assert [kind for kind, _ in kinds].count("changed") == 3
    assert len(kinds) == 6


@pytest.mark.parametrize(
    ("options", "verdict"),
    [((), "different"), (("--rtol", "0.2"), "equal"), (("--rtol", "0", "--atol", "9"), "equal")],
)
def test_tolerances(options: tuple[str, ...], verdict: str, session: Session) -> None:
    slightly = MLP.replace("loss.backward()", "loss.backward(torch.tensor(1.1))")
    assert found(session, *both(session, MLP, slightly), *options)["verdict"] == verdict


@pytest.mark.parametrize(
    ("factor", "words"), [("2.0", "50%"), ("1.0012", "0.12%"), ("1.0001", "0.01%")]
)
def test_how_far_apart_is_always_in_percent(factor: str, words: str, session: Session) -> None:
    program = "import torch\nx = torch.ones(3, requires_grad=True)\n(x * 2).sum().backward()\n"
    scaled = program.replace("backward()", f"backward(torch.tensor({factor}))")
    rows = session.cli("diff", *both(session, program, scaled)).out.splitlines()
    (leaf,) = [row.split() for row in rows if row.startswith("x  ")][:1]
    assert leaf[:3] == ["x", "=", words]


def test_all_values_give_the_angle_and_find_what_norms_hide(session: Session) -> None:
    program = """
    import torch
    x = torch.randn(40, generator=torch.Generator().manual_seed(1)).requires_grad_()
    (x * x).sum().backward()
    """
    turned = program.replace("(x * x)", "(x * x.flip(0).detach() * 2)")
    by_norm = found(session, *both(session, program, turned))
    exact = found(session, *both(session, program, turned, "--values"))
    assert by_norm["exact"] < by_norm["compared"] == exact["exact"] == exact["compared"]
    (leaf,) = exact["leaves"]
    assert -1 <= leaf["gradient"]["cosine"] < 0.9
    assert not leaf["gradient"].get("by_norm", True)
    assert not [one for one in by_norm["leaves"] if float(one["gradient"]["relative"]) > 1e-6]


def test_different_programs_get_a_plain_answer(session: Session) -> None:
    a, b = both(session, MLP, TRANSFORMER)
    done = session.cli("diff", a, b)
    assert done.status == 1
    assert len(done.out.splitlines()) == 3
    assert done.out.splitlines()[2].startswith("different programs: ")
    picture = session.cli("diff", a, b, "-o", "both.svg")
    assert picture.status == 2
    assert "there is no picture of both" in picture.err


def test_a_trace_and_a_backward_compare_by_structure(session: Session) -> None:
    session.told(MLP, "trace -o traced.json")
    session.cli("backward", "program.py", "-o", "watched.json")
    done = session.cli("diff", "traced.json", "watched.json")
    assert done.status == 0
    assert "no gradients to compare" in done.out


def test_sides_take_options_and_arguments(session: Session) -> None:
    path = session.write(
        "import sys, torch\nx = torch.ones(2, requires_grad=True)\nprint(sys.argv[1:])\n"
        "(x * float(sys.argv[1])).sum().backward()\n"
    )
    done = session.cli("diff", f"{path} -- 2", f"{path} --root x.sum() -- 3")
    assert "['2']" in done.err
    assert "['3']" in done.err
    assert "['2']" not in done.out
    assert session.cli("diff", str(path), str(path), "--", "5").status == 0
    code = session.cli("diff", "-c 'exp(x).sum()' --let x=[1,2]", "-c 'exp(x).sum()' --let x=[1,3]")
    assert code.status == 1
    assert "in the values of x" in first_told(code.out)


@pytest.mark.parametrize(
    ("side", "words"),
    [
        ("nosuch.py", "can't open file"),
        ("nosuch.json", "can't open file"),
        ("a.py 'x", "B is not a command line: No closing quotation"),
        ("", "B is empty"),
        ("-c 'exp(x).sum()' --let x=1 --format code", "B has -o or --format, which are of the"),
        ("-c 'exp(x).sum()' --let x=1 -o b.svg", "B has -o or --format, which are of the"),
    ],
)
def test_a_side_that_cannot_be_looked_at(side: str, words: str, session: Session) -> None:
    session.cli("backward", "-c", "exp(x).sum()", "--let", "x=1", "-o", "a.json")
    done = session.cli("diff", "a.json", side)
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    # What happened and what to do next are said once, and by whom they concern.
    assert done.err.count("gradscope: ") <= 3


def test_programs_that_are_compared_are_not_remembered(session: Session) -> None:
    session.write(MLP, "first.py")
    session.cli("trace", "first.py", "-o", "first.json")
    assert session.cli("diff", "first.json", "nosuch.py").status == 2
    told = session.cli("diff", "first.json", "-c exp(x).sum() --let x=1")
    assert "different programs" in told.out
    assert "running first.py again" in session.cli("trace").err


def test_the_picture_marks_what_differs(session: Session) -> None:
    changed = MLP.replace("h = self.drop(h)", "h = h.sin()")
    sides = both(session, MLP, changed)
    done = session.cli("diff", *sides, "--format", "dot", "--all")
    assert done.out.startswith("digraph")
    assert "only in A, " in done.out and "only in B, " in done.out
    assert len(re.findall(r"only in A(?![;,]| \()", done.out)) == 6  # label and tip of three arrows
    assert "only in A (self.drop(h))" in done.out
    assert "h.sin()" in done.out
    # What arrives on each side, of leaves by their names.
    for a, b in zip(*(_norms(side) for side in sides), strict=True):
        assert f"‖g‖ A {a[1]} · B {b[1]}<" in done.out


def test_the_tree_has_both_sides(session: Session) -> None:
    sides = both(session, MLP, MLP.replace("h = self.drop(h)", "h = h.sin()"))
    done = session.cli("diff", *sides, "--format", "tree", "--all", "--width", "140")
    assert done.status == 1 and done.out.splitlines()[1].startswith("different: ")
    assert "‖g‖ in A: a.json, B: b.json; ‖A - B‖ in % of the larger ‖g‖" in done.out
    row = next(line for line in done.out.splitlines() if "○ Sin" in line)
    assert "∅" in row and "only in B" in row
    # What is on one side alone is no part of a sum on the other.
    assert "sum of" not in done.out
    for a, b in zip(*(_norms(side) for side in sides), strict=True):
        assert re.search(rf"● {re.escape(a[0])} .* {a[1]} +{b[1]}( |$)", done.out, re.M)
    for name in sides:
        session.cli("trace", name.replace("json", "py"), "-o", name)
    told = session.cli("diff", *sides, "--format", "tree").out
    assert "A: a.json, B: b.json" in told and "only in B" in told


def test_what_runs_in_another_order_is_not_drawn_in_a_circle(session: Session) -> None:
    lead = "import torch\nx = torch.ones(3, requires_grad=True)\n"
    first = f"{lead}p = torch.sin(x)\nq = torch.exp(p)\n(q * 1).sum().backward()\n"
    other = f"{lead}q = torch.exp(x)\np = torch.sin(q)\n(p * 1).sum().backward()\n"
    told = session.cli("diff", *both(session, first, other), "--format", "tree").out
    assert "different: 3 edges lead elsewhere" in told
    assert "1 of B's edges not drawn: they would go in a circle with A's" in told
    assert re.search(r"○ Exp .* edge only in A ", told)


@pytest.mark.parametrize("more_in", ["A", "B"])
def test_what_one_side_has_more_is_in_the_modules_of_both(more_in: str, session: Session) -> None:
    """So that blocks alike are drawn once, whichever side has the longer ones."""
    fewer = TRANSFORMER.replace("self.up(self.ln_2(x))", "self.up(x)")
    sides = both(session, *((TRANSFORMER, fewer) if more_in == "A" else (fewer, TRANSFORMER)))
    rows = session.cli("diff", *sides, "--format", "tree", "--width", "140").out.splitlines()
    assert any("blocks.* Block" in row and f"9 of 150 only in {more_in}" in row for row in rows)
    table = rows[next(at for at, row in enumerate(rows) if "largest difference first" in row) :]
    shares = [float(row.split()[-1].lstrip("≥").rstrip("%")) for row in table[1:-1]]
    assert shares == sorted(shares, reverse=True) and len(shares) > 3


TWICE = """
import torch
w = torch.tensor([3.0, 4.0], requires_grad=True)
loss = (w * 3).sum() + (w * 5).sum()
loss.backward()
"""


@pytest.mark.parametrize("hooked", ["A", "B"])
def test_what_a_hook_makes_of_a_leaf_is_compared(hooked: str, session: Session) -> None:
    changed = TWICE.replace("loss =", "w.register_hook(lambda g: g * 100)\nloss =")
    sides = (changed, TWICE) if hooked == "A" else (TWICE, changed)
    out = session.cli("diff", *both(session, *sides), "--format", "tree").out
    assert "different: what arrives at 1 leaf differs" in out
    norms = ["1131", "11.31"] if hooked == "A" else ["11.31", "1131"]
    assert out.splitlines()[-1].split() == ["●", "w", "[2]", *norms, "99%"]
    # The rows are edges, which are the same.
    assert re.search(r"● w +\[2\] +4.243 +4.243", out)


def _norms(path: str) -> list[tuple[str, str]]:
    """What each leaf gets, by its name."""
    report = storage.load(path)
    infos = (report.passes[0].brought(place) for place in range(len(report.graph.leaves)))
    pairs = zip(report.graph.leaves, infos, strict=True)
    return sorted((leaf.name, number(float(info.norm or 0))) for leaf, info in pairs)


# ---------------------------------------------------------------- reports built by hand


@pytest.mark.parametrize("make", [reports.small, reports.scalars, reports.doublings])
def test_a_report_is_identical_to_itself(make: Callable[[], Report]) -> None:
    report = make()
    again = storage.decode(storage.encode(report))
    comparison = compare(report, again)
    assert comparison.verdict == "identical"
    assert comparison.pairs == tuple((node.id, node.id) for node in report.graph.nodes)
    check(union(report, again, comparison).report)


def test_what_only_b_has_above_the_root_of_a_is_drawn(session: Session) -> None:
    more = MLP.replace("loss.backward()", "loss = loss.exp()\nloss.backward()")
    assert more != MLP
    tree = session.cli("diff", *both(session, MLP, more), "--format", "tree", "--all").out
    (row,) = [line for line in tree.splitlines()[2:] if "loss.exp()" in line]
    assert "only in B" in row and " more nodes" not in tree
    # What was given to B's root was not given to A's.
    assert re.search(r"∅ +1 +only in B", row)


def test_sides_are_called_by_what_tells_them_apart() -> None:
    a, b = (reports.small().of_target(path) for path in ("/runs/one/r.json", "/runs/two/r.json"))
    assert compare(a, b).names == ("one/r.json", "two/r.json")
    assert compare(a, a.of_target("r.json")).names == ("/runs/one/r.json", "r.json")


def test_states_are_never_taken_for_each_other() -> None:
    report = reports.small()
    backward = report.passes[0]
    entry = backward.edges[0]
    for state, norm in (("none", None), ("zero", 0.0), ("non-finite", "NaN")):
        table = list(backward.gradients)
        table[entry] = msgspec.structs.replace(table[entry], state=state, norm=norm, values=None)
        other = msgspec.structs.replace(
            report, passes=(msgspec.structs.replace(backward, gradients=tuple(table)),)
        )
        comparison = compare(report, other, Tolerance(rtol=0.5))
        assert comparison.verdict == "different"
        assert comparison.differing_edges()[0].distance.states == ("finite", state)


def test_a_deep_chain_that_lost_one_step() -> None:
    comparison = compare(reports.chain(20_000), reports.chain(19_999))
    assert comparison.matched == 20_000
    assert [change.what for change in comparison.changes] == ["removed"]


STEPS = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
for step in range({steps}):
    loss = (w * w).sum()
    loss.backward()
    with torch.no_grad():
        w -= ({rate} if step != {odd} else 0.3) * w.grad
        w.grad = None
"""


def test_one_call_is_compared_where_one_is_asked_for(session: Session) -> None:
    session.write(STEPS.format(rate=0.1, odd=-1, steps=2), "a.py")
    session.write(STEPS.format(rate=0.2, odd=-1, steps=2), "b.py")
    told = " ".join(session.cli("diff", "a.py", "b.py").out.split())
    assert "compared is backward call 1, before any step" in told and "--call 2" in told
    later = " ".join(session.cli("diff", "a.py --call 2", "b.py --call 2").out.split())
    assert "different" in later and "compared is" not in later
    both = " ".join(session.cli("diff", "a.py", "b.py", "--call", "2").out.split())
    assert both.partition("different")[2] == later.partition("different")[2]
    # What one side says for itself goes before.
    session.cli("diff", "a.py --call 1", "b.py", "--call", "2", "-o", "both.json")
    sides = json.loads((session.folder / "both.json").read_text())
    assert [sides[side]["call"] for side in "ab"] == [1, 2]
    others = " ".join(session.cli("diff", "a.py --call 1", "b.py", "--call", "2").out.split())
    assert "A is backward call 1, B is backward call 2: --call N compares the same one" in others
    given = session.cli("diff", "a.py --gradient 2", "b.py --gradient 2")
    assert "identical" in given.out and "compared is" not in given.out


@pytest.mark.parametrize(("seed", "is_told"), [((), True), (("--seed", "0"), False)])
def test_a_program_that_gives_other_numbers_each_time_is_told(
    process: Session, seed: tuple[str, ...], is_told: bool
) -> None:
    # Its process differs: the forks of tests draw the same random numbers.
    process.write("import os, torch\nx = torch.full((3,), 1.0 * os.getpid(), requires_grad=True)\n")
    with (process.folder / "program.py").open("a") as program:
        program.write("(x * x).sum().backward()\n")
    done = process.cli("diff", "program.py", "program.py", *seed)
    words = "A and B are one program, which gave other numbers: if it draws random ones, --seed 0"
    assert (words in " ".join(done.err.split()), done.status) == (is_told, 1)
