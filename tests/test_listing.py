"""The program's source with the gradients beside it: ``--format code``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from gradscope.render import as_text
from tests.goldens import compare
from tests.looking import Session
from tests.own_functions import function
from tests.reports import CASES

LOOP = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(5))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        # Nothing is computed here,
        # nor here,
        # nor here,
        # nor here.
        return x.mean(0), x.sum()


torch.manual_seed(0)
net = Net()
mean, total = net(torch.randn(3, 4))
loss = mean.exp().sum() + total
loss.backward()
"""


def by_torch() -> dict[int, list[float]]:
    """The norms that torch itself gives for what each line of LOOP made, as the program ran."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 4) for _ in range(5)]
    x, states = torch.randn(3, 4), []
    for layer in layers:
        x = x + torch.tanh(layer(x))
        states.append(x)
    mean, total = x.mean(0), x.sum()
    loss = mean.exp().sum() + total
    of_states = torch.autograd.grad(loss, states, retain_graph=True)
    of_mean, of_total = torch.autograd.grad(loss, [mean, total])
    norms = [float(one.norm()) for one in of_states]
    return {11: norms, 16: [float(of_mean.norm()), float(of_total)], 22: [1.0]}


def numbers(line: str) -> list[float]:
    return [float(one) for one in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?", line)]


def test_each_line_has_what_torch_gives_for_what_it_made(session: Session) -> None:
    rows = session.told(LOOP, "backward --format code --width 140").out.splitlines()
    found = by_torch()
    (row,) = [one for one in rows if "torch.tanh(layer(x))" in one]
    ends = re.findall(r"([\d.]+)\u2013([\d.]+)  ×5", row)[0]
    assert list(map(float, ends)) == pytest.approx([min(found[11]), max(found[11])], rel=1e-3)
    # Two results of one line are two rows below it.
    parts = [rows[rows.index(next(r for r in rows if "return x.mean" in r)) + at] for at in (1, 2)]
    assert [numbers(part)[-1] for part in parts] == pytest.approx(found[16], rel=1e-3)
    assert "x.mean(0)" in parts[0] and "x.sum()" in parts[1]
    (row,) = [one for one in rows if one.startswith("22")]
    assert numbers(row)[-1] == 1


CALLING = """
import torch
from torch import nn


class Curve(nn.Module):
    def forward(self, x):
        return x.tanh()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(nn.Linear(4, 4), Last())

    def forward(self, x):
        made = self.branch(x)
        kept.append(made)
        return x + 2 * made


kept = []
torch.manual_seed(0)
Last = nn.Tanh
blocks = nn.ModuleList(Block() for _ in range(4))
x = torch.randn(3, 4)
for block in blocks:
    x = block(x)
    kept.append(x)
(x * x).sum().backward()
"""


@pytest.mark.parametrize("last", ["nn.Tanh", "Curve"])
def test_a_line_that_only_calls_a_module_has_what_arrives_at_its_result(
    last: str, session: Session
) -> None:
    source = CALLING.replace("Last = nn.Tanh", f"Last = {last}")
    path = str(session.write(source))
    scope: dict[str, Any] = {}
    program, _, _ = source.rpartition("(x * x)")
    exec(program, scope)
    loss = (scope["x"] * scope["x"]).sum()
    norms = [float(one.norm()) for one in torch.autograd.grad(loss, scope["kept"])]
    expected = {"made = self.branch(x)": norms[::2], "x = block(x)": norms[1::2]}
    rows = session.cli("backward", path, "--format", "code", "--width", "120").out.splitlines()
    for words, each in expected.items():
        (row,) = [row for row in rows if words in row]
        ends = re.findall(r"([\d.]+)\u2013([\d.]+)  ×4", row)[0]
        assert list(map(float, ends)) == pytest.approx([min(each), max(each)], rel=1e-3)
    # Nothing behind the last block could be a skip around it.
    (row,) = [row for row in rows if "return x + 2 * made" in row]
    assert re.search(r"\d+–\d+ % by skip ×3$", row)


SLOPE = """
import torch
x = torch.tensor(2.0, requires_grad=True)
y = x**4
(slope,) = torch.autograd.grad(y, x, create_graph=True)
loss = 3 * slope + 5 * y
loss.backward()
"""


def test_what_a_backward_made_stands_at_the_line_that_called_it(session: Session) -> None:
    session.write(SLOPE)
    report = session.look_at("program.py")
    out = session.cli("show", "report.json", "--format", "code").out
    (row,) = [row for row in out.splitlines() if "autograd.grad(y" in row]
    assert re.search(r"create_graph=True\)  +3 ", row)
    (row,) = [row for row in out.splitlines() if " y = x**4" in row]
    assert re.search(r"x\*\*4  +5 ", row)
    # Of a report that was saved before that was known.
    nodes = (msgspec.structs.replace(node, derived=None) for node in report.graph.nodes)
    graph = msgspec.structs.replace(report.graph, nodes=tuple(nodes))
    out = as_text(msgspec.structs.replace(report, graph=graph), "code")
    assert out.endswith(" nodes more, made by no line that is known\n")
    assert "\n\n\n" not in out


def test_a_file_that_has_changed_since_is_not_shown(session: Session) -> None:
    session.look(LOOP)
    before = session.cli("show report.json --format code").out
    assert "def forward" in before
    # In the second the expression is where it was, and the line is another one.
    for other in ("y = x * torch.tanh", "x = 2 - x + torch.tanh"):
        session.write(LOOP.replace("x = x + torch.tanh", other))
        after = session.cli("show report.json --format code").out
        assert "def forward" not in after and "x + torch.tanh(layer(x))" in after
        assert numbers(after)[-1] == numbers(before)[-1]
    # As in a new clone.
    session.write(LOOP)
    os.utime("program.py", (2**31, 2**31))
    assert "def forward" in session.cli("show", "report.json", "--format", "code").out


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: ("# -*- coding: latin-1 -*-\n# \u00e9\n" + text).encode("latin-1"),
        lambda text: text.replace("\n", "\r\n").encode() + b"\x0c",
    ],
)
def test_a_file_is_read_as_python_reads_it(
    encode: Callable[[str], bytes], session: Session
) -> None:
    path = session.write(LOOP)
    path.write_bytes(encode(path.read_text("utf-8")))
    assert "def forward" in session.cli("backward", "program.py", "--format", "code").out


BEGIN = """
import torch
w = torch.tensor(0.5, requires_grad=True)
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
"""
FED_AGAIN = [3**0.5 * 0.5**step for step in range(4)]


@pytest.mark.parametrize(
    ("lines", "row", "expected"),
    [
        # What an expression makes is fed to it again, and no variable holds it.
        (
            "def step(t): return t * w\nfor _ in range(4): x = step(x)\nx.sum().backward()",
            "return t * w",
            FED_AGAIN,
        ),
        ("h = x * 1\nfor _ in range(4):\n    h *= w\nh.sum().backward()", "h *= w", FED_AGAIN),
        (
            "a = (x, 0)\nfor _ in range(4): a = (a[0] * w, 0)\na[0].sum().backward()",
            "a = (a[0] * w",
            FED_AGAIN,
        ),
        (
            "def up(t, n): return t if n == 0 else up(torch.mul(t, w), n - 1)\n"
            "up(x, 4).sum().backward()",
            "def up",
            FED_AGAIN,
        ),
        # As of equal modules in a row, each the only operation of its line.
        (
            "class B(torch.nn.Module):\n    def forward(self, t): return t * w\n"
            "torch.nn.Sequential(B(), B(), B(), B())(x).sum().backward()",
            "def forward",
            FED_AGAIN,
        ),
        # One evaluation of many calls, of which only the last made its value.
        (
            "net = torch.nn.Sequential(*(torch.nn.Sigmoid() for _ in range(4)))\n"
            "net(x).sum().backward()",
            "net(x)",
            [1],
        ),
        # The same text twice in a line, and only one of them is a part.
        ("s = x * w; t = (x * w).sum(); (s.sum() + 4 * t).backward()", "└─x * w ", [3**0.5]),
        ("s = x * w; t = (x * w).sum(); (s.sum() + 4 * t).backward()", "└─(x * w).sum() ", [4]),
        ("y = x * 1\ny[0] = x[1] * w\n(2 * y).sum().backward()", "y[0] = ", [12**0.5]),
        ("e = (p := x * w).exp()\n(2 * e).sum().backward()", "e = ", [12**0.5]),
    ],
)
def test_a_line_shows_all_that_it_made(
    session: Session, lines: str, row: str, expected: list[float]
) -> None:
    shown = session.told(BEGIN + lines, "backward --format code --width 140").out
    [found] = [one for one in shown.splitlines() if row in one]
    ends = f"{min(expected):.4g}\u2013{max(expected):.4g}  \u00d7{len(expected)} "
    assert f" {ends if len(expected) > 1 else f'{expected[0]:.4g}'}" in found


@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("\ty\t= torch.sqrt(w)", " " * 18),
        ("    y = len('漢字') * torch.sqrt(w)", " " * len("    y = len('12ab') * ")),
        # Which one is meant is not known.
        ("    y = torch.sqrt(w) * torch.sqrt(w)", None),
    ],
)
def test_a_mark_stands_below_what_it_marks(session: Session, line: str, before: str | None) -> None:
    indent = line[: -len(line.lstrip())]
    text = f"def f(w):\n{line}\n{indent}return y.sum()"
    session.write(f"import torch\n{text}\nf(torch.zeros(3, requires_grad=True)).backward()\n")
    session.cli("doctor", "program.py", "-q", "-o", "report.json")
    rows = session.cli("show", "report.json", "--format", "code").out.splitlines()
    told = "  ✖ GS102 nonfinite-backward: Backward of `torch.sqrt(w)` turns"
    assert any(row.startswith(told) for row in rows)
    marks = [row for row in rows if row.strip() and set(row) <= {" ", "^"}]
    # Two cells for the number of the line and two between.
    assert marks == ([] if before is None else [f"   {before}{'^' * len('torch.sqrt(w)')}"])


def test_a_line_without_a_gradient_is_shown_with_what_was_found_there(session: Session) -> None:
    text = """
    import torch
    a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    step = torch.optim.SGD(a.parameters(), lr=0.1)
    for _ in range(3):
        step.zero_grad()
        a(b(torch.ones(2))).sum().backward()
        step.step()
    """
    session.told(text, "doctor -q -o report.json")
    shown = "show report.json --format code --width 60"
    rows = session.cli(shown).out.splitlines()
    [row] = [at for at, one in enumerate(rows) if "GS307" in one]
    assert rows[row - 2].startswith("3  step = torch.optim.SGD(a.parameters()")
    assert set(rows[row - 1]) <= {" ", "^"}
    assert rows[row].startswith("  ▲ GS307 not-in-optimizer: ")
    below = [one[:9] for one in rows[row:]]
    assert "    seen " in below and any(one.startswith("    do ") for one in below)
    # Of one part of the graph what was found elsewhere stands at the end, and as completely.
    rows = session.cli(shown, "--path", "a.bias").out.splitlines()
    [row] = [at for at, one in enumerate(rows) if "GS307" in one]
    assert rows[row].startswith("▲ GS307 not-in-optimizer · warning · program.py:3 ")
    assert any(one.startswith("  do ") for one in rows[row:])


def test_a_report_cannot_have_any_file_shown(session: Session) -> None:
    session.write(LOOP)
    session.look_at("program.py")
    # What stands in a file of another kind is the reader's own, and a pipe would be read for ever.
    report = (session.folder / "report.json").read_text()
    session.write(LOOP, "private.txt")
    os.mkfifo(session.folder / "pipe.py")
    for name in ("private.txt", "pipe.py"):
        (session.folder / "other.json").write_text(report.replace("program.py", name))
        shown = session.cli("show", "other.json", "--format", "code").out
        assert name in shown and "torch.tanh(layer(x))" in shown and "def forward" not in shown


ASKED = """
import torch

a = torch.tensor([2.0, 3.0], requires_grad=True)
b = torch.tensor([0.5, -1.0], requires_grad=True)
product = a * b
h = torch.sin(product)
loss = torch.relu(h).sum()
loss.backward()
"""


def asked(command: str, session: Session) -> dict[int, str]:
    """The lines of ASKED under another command, by their numbers."""
    shown = session.told(ASKED, command, "--format", "code", "--width", "140").out
    return {int(line.split()[0]): line for line in shown.splitlines() if line[:1].isdigit()}


def test_explain_puts_each_derivative_at_its_line(session: Session) -> None:
    lines = asked("explain", session)
    product = torch.tensor([1.0, -3.0])
    cosine = [f"{x:.4g}" for x in torch.cos(product).tolist()]
    assert "by a: [0.5, -1] · by b: [2, 3]" in lines[5]
    assert f"by product: [{', '.join(cosine)}]" in lines[6]


def test_memory_puts_saved_bytes_at_their_line(session: Session) -> None:
    lines = asked("memory", session)
    # sin saves its operand and relu its result: two float32 each.  a and b are there anyway.
    assert [number for number, line in lines.items() if "8 B" in line] == [6, 7]


def test_check_puts_its_verdict_at_the_line(session: Session) -> None:
    assert all("right" in line for line in asked("check", session).values())


@pytest.mark.parametrize("case", ["small", "transformer", "states", "hostile", "diagnosed"])
def test_without_the_source_the_expressions_are_shown(case: str) -> None:
    compare(f"code/{case}.txt", as_text(CASES[case](), "code"))


@pytest.mark.parametrize("other", ["t * w2", "t * w.abs()", "(t * wide\n        .sum())"])
def test_what_begins_with_the_text_of_another_does_not_hold_it(
    session: Session, other: str
) -> None:
    begin = BEGIN + "w2 = wide = torch.tensor([2.0, 2.0, 2.0], requires_grad=True)\n"
    session.write(
        f"{begin}def both(t):\n    return t * w, {other}\n"
        "a, b = both(x)\n(10 * a + 1000 * b).sum().backward()\n"
    )
    rows = session.cli("backward", "program.py", "--format", "code", "--width", "140").out
    (row,) = [one for one in rows.splitlines() if one.lstrip(" └─`").startswith("t * w ")]
    assert numbers(row)[-1] == pytest.approx(10 * 3**0.5, rel=1e-3)


def test_the_answer_of_an_expression_is_on_its_parts_too(session: Session) -> None:
    """Where several values of a line have rows of their own."""
    wrong = function("Wrong", "2 * x", "grad")
    session.write(
        f"import torch\n{wrong}"
        "x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)\n"
        "y = x.exp(); z = Wrong.apply(x) + x.sin()\n"
        "(y + z).sum().backward()\n"
    )
    shown = session.cli("check", "program.py", "--format", "code", "--width", "140").out
    answers = [row.split("  ")[-2:][0].strip() for row in shown.splitlines() if "└─" in row]
    assert answers == ["right", "wrong 1 of 3"]
    assert "6 calls: 1 wrong, 5 right · whole program: 1 wrong" in shown
    [backward, differences] = re.findall(r"✖ Wrong by x at \[1\]: backward (.+), .+ (.+)", shown)[0]
    assert float(differences) == pytest.approx(2 * float(backward), rel=1e-3)


TERMS = """
import torch
a = torch.tensor([1.0, 2.0], requires_grad=True)
h = a * a
fit = h.sum()
size = (3 * h).exp().sum() * 1e-5
loss = fit + size
loss.backward()
"""


def test_each_term_has_a_column_with_its_share_of_what_arrives(session: Session) -> None:
    shown = session.told(TERMS, "backward --by term --format code").out
    lines = {int(line.split()[0]): line for line in shown.splitlines() if line[:1].isdigit()}
    h = torch.tensor([1.0, 4.0], requires_grad=True)
    norms = [
        float(torch.autograd.grad(one, h)[0].norm())
        for one in (h.sum(), (3 * h).exp().sum() * 1e-5)
    ]
    shares = [round(100 * norm / sum(norms)) for norm in norms]
    shown_of = {number: re.findall(r"[<>]?(\d+) %", line) for number, line in lines.items()}
    assert [*map(int, shown_of[3])] == shares
    assert [shown_of[4], shown_of[5]] == [["100", "0"], ["0", "100"]]
    assert shown_of[6] == []  # where they are one sum
    picture = session.cli("backward program.py --by term --format dot").out
    assert "what each term brings is told in the text and the page" in picture


def with_package(session: Session, name: str, package: str, program: str) -> None:
    """Write a program, and a module that looks as if it were installed, which it imports."""
    # A folder of its own name: python remembers what it has found in one.
    folder = session.folder / name / "site-packages"
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(package)
    session.write(
        f"import sys, torch\nsys.path.insert(0, '{name}/site-packages')\nimport {name}\n{program}"
    )


LONG = "t = t * 1\n" * 36
"""Lines beside which what an installed package did has no room of its own."""


def test_a_function_that_adds_terms_up_has_no_share_of_one(session: Session) -> None:
    with_package(
        session,
        "summing",
        "def one(x):\n    return x.sin().sum()\n\n\n"
        "def loss_of(x):\n    y = x.exp().sum()\n    return one(x) + y\n",
        f"t = torch.ones(2, requires_grad=True)\n{LONG}summing.loss_of(t).backward()\n",
    )
    asked = ("backward", "program.py", "--by", "term", "--format", "code")
    one, loss_of, _ = session.cli(*asked).out.splitlines()[-3:]
    assert one.count("%") == 2 and "loss_of" in loss_of and "%" not in loss_of
    assert "100 %" in session.cli(*asked, "--all").out.split("loss_of")[-1]


STEPS = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
for step in range(1, 4):
    h = w * step
    loss = (h * h).sum()
    loss.backward()
"""


def test_each_backward_call_has_a_column(session: Session) -> None:
    shown = session.told(STEPS, "backward --steps 3 --format code").out
    (row,) = [line for line in shown.splitlines() if "h = w * step" in line]
    w = torch.tensor([1.0, 2.0])
    wanted = [float((2 * w * step).norm()) for step in range(1, 4)]
    assert [*map(float, row.split("step")[1].split()[:3])] == pytest.approx(wanted, rel=1e-3)
    assert "‖g‖ 1" in shown and "‖g‖ 3" in shown
    picture = session.cli("backward program.py --steps 3 --format dot").out
    assert "call 1 of backward calls 1, 2, 3: --call N shows another" in picture


@pytest.mark.parametrize("width", [40, 300])
def test_columns_of_terms_keep_to_the_width(width: int, session: Session) -> None:
    asked = f"backward --by term --format code --width {width}"
    rows = session.told(TERMS, asked).out.splitlines()
    assert max(map(len, rows)) <= width
    (row,) = [one for one in rows if one.lstrip().startswith("3 ")]
    assert row.count("%") == 2 and "h = a" in row


def test_markdown_is_the_listing_in_one_block_that_nothing_in_it_ends(session: Session) -> None:
    fences = "`" * 5
    session.write(f"{TERMS}# {fences}\n".replace("h = a * a", f"h = a * a  # {fences}"))
    done = session.cli("backward", "program.py", "-o", "issue.md")
    assert done.status == 0, done.err
    first, *inside, last, _ = (session.folder / "issue.md").read_text("utf-8").split("\n")
    assert (first, last) == (f"{fences}`text", f"{fences}`")
    assert any(fences in line for line in inside)
    shown = session.cli("backward", "program.py", "--format", "code", "--width", "100").out
    assert "\n".join(inside).rstrip() == shown.rstrip()


@pytest.mark.parametrize(
    "asked",
    [
        *(f"backward program.py --by term --format {form}" for form in ("code", "tree", "table")),
        *("diff report.json other.json", "depends program.py --of h --on a"),
        "backward program.py --by output",
    ],
)
def test_a_text_in_a_file_of_markdown_is_a_block(asked: str, session: Session) -> None:
    session.look(TERMS.replace("1e-5", "1e-4"))
    (session.folder / "report.json").rename("other.json")
    session.look(TERMS)
    for name in ("issue.md", "own.txt"):
        session.cli(asked, "-o", name)
    block, own = ((session.folder / name).read_text("utf-8") for name in ("issue.md", "own.txt"))
    assert own.strip() and block == f"```text\n{own}```\n"


def test_what_the_doctor_found_is_a_block_of_markdown_too(session: Session) -> None:
    session.told(TERMS, "doctor -o issue.md")
    block = (session.folder / "issue.md").read_text("utf-8")
    assert re.fullmatch(r"```text\n[^`]*\nno findings[^`]*\n```\n", block)


def test_functions_of_an_installed_package_are_a_line_each_without_room(session: Session) -> None:
    program = "a, t = (torch.ones(2, requires_grad=True) for _ in range(2))\nw = t\n"
    with_package(
        session,
        "lossy",
        "def scaled(x):\n    y = 3 * x\n    return y\n\n\n"
        "def loss_of(x, w):\n    y = w * x\n    return (y * y).sum()\n",
        f"{program}{LONG}lossy.loss_of(lossy.scaled(a.sin() + t), w).backward()\n",
    )
    asked = ("backward", "program.py", "--format", "code")
    rows = session.cli(*asked).out.splitlines()
    scaled, loss_of, leaves, rest = rows[-4:]
    # The file is named once.
    assert "lossy.py · scaled:2 " in scaled and loss_of.split()[0] == "loss_of:7–8"
    y = 3 * (torch.ones(2).sin() + 1)
    assert numbers(scaled)[-1] == pytest.approx(float((2 * y).norm()), rel=1e-3)
    assert "up to" in loss_of and leaves.startswith("       ● w ")
    assert rest == "2 functions of installed packages, a line each: --all"
    assert "history cut" not in "".join(rows)
    opened = session.cli(*asked, "--all").out
    assert "y = 3 * x" in opened and "a line each" not in opened
    session.write(f"import lossy\n{BEGIN}lossy.loss_of(lossy.scaled(x), w).backward()\n")
    opened = session.cli(*asked).out
    assert "y = 3 * x" in opened and "a line each" not in opened


def test_many_leaves_of_a_line_are_counted_and_the_largest_is_named(session: Session) -> None:
    made = "".join(
        f"{x} = torch.tensor({n}.0, requires_grad=True)\n" for n, x in enumerate("abcdefg")
    )
    session.write(f"import torch\n{made}sum(n**2 for n in (a, b, c, d, e, f, g)).backward()\n")
    told = session.cli("backward", "program.py", "--format", "code").out
    assert told.endswith("  ● 7 leaves 0 in 1 of 7 · 2–12, largest g\n")


CELL = """
import torch
torch.manual_seed(0)
cell, h, c, states = torch.nn.LSTMCell(3, 3), torch.zeros(1, 3), torch.zeros(1, 3), []
for _ in range(4):
    h, c = cell(torch.ones(1, 3), (h, c))
    h.retain_grad()
    states.append(h)
(h.sum() + c.sum()).backward()
"""


def test_of_two_results_in_a_loop_not_one_of_another_name_is_counted(session: Session) -> None:
    scope: dict[str, Any] = {}
    exec(CELL, scope)
    norms = [float(state.grad.norm()) for state in scope["states"]]
    shown = session.told(CELL, "backward --format code --width 140").out
    [row] = [one for one in shown.splitlines() if "h, c = cell" in one]
    assert f" {min(norms):.4g}\u2013{max(norms):.4g}  \u00d74 " in row


ASIDE = """
import torch
from torch import nn


class Noted(nn.Module):
    def forward(self, x):
        y = x.tanh()
        self.aside = 1000 * y.square().mean()
        return y


class Curve(nn.Module):
    def forward(self, x):
        return x.sin()


noted = Noted()
x = torch.ones(3, requires_grad=True)
y = noted(x)
for f in (Curve(), torch.exp, Curve(), torch.exp):
    y = f(y)
(y.sum() + noted.aside).backward()
"""


def test_of_the_evaluations_of_a_line_some_call_modules(session: Session) -> None:
    rows = session.told(ASIDE, "backward --format code").out.splitlines()
    (mixed,) = [row for row in rows if "y = f(y)" in row]
    assert "×4" in mixed


RETURNED = """
import torch
from torch import nn


class Noted(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(3, 3)

    def forward(self, x):
        {forward}
        self.aside = 1000 * self.gate(x).square().mean()
        return {returned}


torch.manual_seed(0)
noted = Noted()
{hook}
x = torch.ones(3, requires_grad=True)
{names} = noted(x)
loss = (2 * y).square().sum() + noted.aside
"""
HOOK = "noted.register_forward_hook(lambda module, given, made: made * 10)"


@pytest.mark.parametrize(
    ("forward", "returned", "names", "hook", "is_told"),
    [
        ("y = x.tanh()", "y", "y", "", True),
        ("y = x.tanh()", "y", "y", HOOK, True),
        # What it was given it did not make.
        ("pass", "x", "y", "", False),
        ("y = x.tanh()", "y, x.exp()", "y, _", "", True),
        ("y = x.tanh()", "x.exp(), y", "_, y", "", True),
        ("y = x.tanh()", "[x.exp(), (y, x)]", "_, (y, _)", "", False),
        ("y = x.tanh()", "{'y': y}", "made", "", True),
        ("y, z = x.tanh(), x.exp()", "y, z", "y, z", "", False),
        # Of several outputs of one node.
        ("y, z, _ = torch.stack([x, x, x]).tanh().unbind()", "z", "y", "", False),
    ],
)
def test_what_arrives_at_what_a_module_returned(
    forward: str, returned: str, names: str, hook: str, is_told: bool, session: Session
) -> None:
    source = RETURNED.format(forward=forward, returned=returned, names=names, hook=hook)
    source = source.replace("made = noted(x)", "made = noted(x)\ny = made['y']")
    session.write(source + "loss.backward()\n")
    scope: dict[str, Any] = {}
    exec(source, scope)
    (gradient,) = torch.autograd.grad(scope["loss"], scope["y"])
    rows = session.cli("backward", "program.py", "--format", "code", "--width", "140")
    parts = [row.split("= noted(x)")[1] for row in rows.out.splitlines() if "= noted(x)" in row]
    told = [number for part in parts for number in numbers(part.split("●")[0])]
    assert told == (pytest.approx([float(gradient.norm())], rel=1e-3) if is_told else [])
