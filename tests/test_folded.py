"""What is folded can be unfolded again, in every format that folds; and its numbers add up."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import torch

from gradscope.model.report import Report
from gradscope.render import Options, render
from gradscope.simplify import Folding
from gradscope.simplify.folded import meant, simplify
from gradscope.simplify.gradients import ViewGradients
from gradscope.simplify.view import View
from tests.looking import Session
from tests.program import Program
from tests.proven import prove
from tests.reports import (
    blocks_of_functions,
    chain,
    decaying,
    doublings,
    functions,
    transformer,
    two_roots,
)

PROGRAMS = {
    "transformer": transformer(3),
    "deep transformer": transformer(31),
    "blocks of functions": blocks_of_functions(),
    "functions": functions(),
    "loop": doublings(),
    "long loop": decaying(130),
    "chain": chain(400, distinct=True),
    "two roots": two_roots(),
}


def shown(report: Report, format: str, folding: Folding) -> str:
    text = render(report, format, Options(width=400, lines=100_000, folding=folding))
    assert isinstance(text, str)
    return text


def operations_in_tree(text: str) -> Iterator[int]:
    """The operations that each row of a tree stands for."""
    framed = 1
    for line in unmarked(text.split("\n\n")[0]).splitlines():
        # What is drawn once for many has their number in its frame.
        framed = rounds(line) if re.match(r"[│├└─ ]*▾", line) else framed
        match = re.match(r"[│┊├└─ ]*(◇ ▸|[○◇▸])", line)
        told = line if rounds(line) > 1 or "┊" not in line else f"{line} ×{framed:,}"
        if match:
            yield number_of_operations(told) if "▸" in match[1] else rounds(told)
        elif " transposed" in line:
            yield rounds(told)  # what turns a leaf on the way to it


def operations_in_dot(text: str) -> Iterator[int]:
    lines = unmarked(text).splitlines()
    wholes = (line.split("tooltip")[0] for line in lines if re.match(r"\twhole\d+ \[", line))
    framed = [rounds(re.sub(r"<[^>]*>", "  ", whole)) for whole in wholes]
    once = 1
    for line in lines:
        if cluster := re.match(r"\tsubgraph cluster(\d+)", line):
            once = framed[int(cluster[1])]
        if line == "\t}":
            once = 1
        words = re.sub(r"<[^>]*>", "  ", line.split("tooltip")[0])
        item = re.match(r"\t+(\d+) \[", line)
        if item and "leaf" not in line.split("tooltip")[0]:
            told = words if rounds(words) > 1 or once == 1 else f"{words} ×{once}"
            yield number_of_operations(told) if "peripheries=2" in line else rounds(told)


def unmarked(text: str) -> str:
    """Without what the verdict marks."""
    return re.sub(r"[△▲✖] |grows ×[\d.e]+", "", text)


def number_of_operations(text: str) -> int:
    """``57 ops``, or ``57 ops ×12`` of what is drawn once for many; else the rounds of a loop over
    one operation; else one."""
    found = re.search(r"\b([\d,]+) ops?\b(.*)", text)
    return int(found[1].replace(",", "")) * rounds(found[2]) if found else rounds(text)


def rounds(text: str) -> int:
    return math.prod(int(many.replace(",", "")) for many in re.findall(r" ×([\d,]+)", text))


COUNTERS = {"tree": operations_in_tree, "dot": operations_in_dot}
FOLDINGS = [Folding(), Folding(all=True), *(Folding(depth=depth) for depth in (1, 2, 3))]


@pytest.mark.parametrize("folding", FOLDINGS, ids=str)
@pytest.mark.parametrize("format", COUNTERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_counts_on_what_is_folded_add_up_to_the_graph(
    name: str, format: str, folding: Folding
) -> None:
    report = PROGRAMS[name]
    operations = sum(node.kind != "leaf" for node in report.graph.nodes)
    assert sum(COUNTERS[format](shown(report, format, folding))) == operations


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_node_is_reached_by_opening_what_is_closed(name: str) -> None:
    """Focusing on a closed item shows finer ones, again and again down to the nodes."""
    graph = PROGRAMS[name].graph
    alone: set[int] = set()
    seen: set[str] = set()
    waiting = [simplify(graph)]
    while waiting:
        view = waiting.pop()
        prove(view, graph)
        alone |= {item.members[0] for item in view.items if not item.folded}
        closed = {item.title for item in view.items if item.folded and item.template is None}
        for title in closed - seen:
            seen.add(title)
            finer = simplify(graph, Folding(focus=title, depth=1))
            assert largest(finer, title) < largest(view, title), title
            waiting.append(finer)
        # What is drawn once is reached round by round.
        for name in {one.name for frame in view.templates for one in frame.rounds} - seen:
            seen.add(name)
            waiting.append(simplify(graph, Folding(focus=name, all=True)))
    assert len(alone) == len(graph.nodes)


def largest(view: View, title: str) -> int:
    """The nodes in the largest closed item of this title."""
    sizes = [len(item.members) for item in view.items if item.folded and item.title == title]
    return max(sizes, default=0)


@pytest.mark.parametrize("format", COUNTERS)
@pytest.mark.parametrize(
    ("name", "glob", "depth", "single", "closed"),
    [
        ("deep transformer", "gpt.h.3.mlp", None, "self.act", "gpt.h.4"),
        ("deep transformer", "gpt.h.3", 1, "x = x + self.attn", "gpt.h.3.mlp"),
        ("deep transformer", "*.wte", None, "self.wte(ids)", "gpt.h.*"),
        ("functions", "attend", None, "attend4(x)", "mlp()"),
        ("functions", "mlp2(x)", None, "mlp2(x)", "attend()"),
        ("functions", "Mlp2", None, "mlp2(x)", "attend()"),
        ("transformer", "loss", None, "loss", "gpt"),
        ("transformer", "?pt.h.1", None, "self.mlp(self.ln_mlp(x))", "gpt.h.0"),
    ],
)
def test_focus_opens_what_matches_and_closes_the_rest(
    format: str, name: str, glob: str, depth: int | None, single: str, closed: str
) -> None:
    text = shown(PROGRAMS[name], format, Folding(focus=glob, depth=depth))
    assert single in text
    assert re.search(rf"(▸ |\[.*<B>|▸ .*){re.escape(closed)}(?!\w)", text)


def test_focus_with_all_opens_everything_inside() -> None:
    graph = PROGRAMS["deep transformer"].graph
    view = simplify(graph, Folding(focus="gpt.h.3", all=True))
    inside = [node.id for node in graph.nodes if graph.module_of(node).startswith("gpt.h.3.")]
    alone = {item.members[0] for item in view.items if not item.folded}
    assert inside and alone >= set(inside)


def test_focus_names_the_leaves_that_are_used_there() -> None:
    graph = PROGRAMS["functions"].graph
    names = {leaf.node: leaf.names[0] for leaf in graph.leaves}
    found = meant(graph, Folding(focus="norm"))
    assert {names[node] for node in found if node in names} == {"x", *(f"W[{i}]" for i in range(4))}
    # Brackets are part of a name before they are a pattern.
    assert [names[node] for node in meant(graph, Folding(focus="W[2]"))] == ["W[2]"]


EXPERTS = """
import torch
from torch import nn

class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 8)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(8))
    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            if number != 2:
                out = out + expert(x) * weights[:, number, None]
        return out

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Mixture() for _ in range(3))
    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x

torch.manual_seed(0)
model = Model()
model(torch.randn(5, 6)).square().mean().backward()
"""


def test_members_of_a_repeat_have_their_names_and_their_own_gradients(session: Session) -> None:
    path = session.write(EXPERTS)
    results: dict[str, Any] = {}

    def keep(name: str) -> Callable[..., None]:
        def made(*given: Any) -> None:
            results[name] = given[2]
            given[2].retain_grad()

        return made

    scope: dict[str, Any] = {}
    head, _, last = EXPERTS.partition("model(torch.randn")
    exec(head, scope)
    for name, module in scope["model"].named_modules():
        module.register_forward_hook(keep(name))
    exec(f"model(torch.randn{last}", scope)
    arrived = {name: float(result.grad.norm()) for name, result in results.items()}

    report = session.look_at(str(path))
    frames = simplify(report.graph, Folding(focus="layers.1")).templates
    (experts,) = [one for one in frames if one.title.endswith("experts.*")]
    numbers, names = (7, 6, 5, 4, 3, 1, 0), [one.name for one in experts.rounds]
    assert names == [f"layers.1.experts.{number}" for number in numbers]
    folded = simplify(report.graph, Folding(focus="layers.1"))
    infos = ViewGradients(report.graph, report.passes[0], folded).rounds(experts)
    for name, info in zip(names, infos, strict=True):
        assert info.norm == pytest.approx(arrived[name], rel=1e-5), name

    text = session.cli("backward", "--width", "200", str(path)).out
    # The verdict: before all that is told of the others.
    absent = "△ layers.0.experts.2, layers.1.experts.2, layers.2.experts.2 were not called"
    assert text.splitlines()[1].startswith(absent)
    rows = [line for line in text.splitlines() if re.search(r"[▸○] experts\.\d ", line)]
    assert len(rows) == len(numbers)
    for row, number in zip(rows, numbers, strict=True):
        assert f" experts.{number} " in row
        norms = [arrived[f"layers.{layer}.experts.{number}"] for layer in range(3)]
        assert f"{min(norms):.4g}–{max(norms):.4g}" in row, (row, norms)

    # In a picture they would hide what is around them: one box, which names whom nobody called.
    drawn = shown(report, "dot", Folding())
    assert not re.search(r"<B>experts\.\d", drawn)
    assert "not called: experts.2" in drawn
    focused = shown(report, "tree", Folding(focus="layers.1"))
    assert "layers.1.experts.* Sequential ×7 · not called: experts.2" in focused
    code = shown(report, "code", Folding()).splitlines()
    (at,) = [place for place, row in enumerate(code) if "expert(" in row]
    assert code[at + 1] == "  △ not called: experts.2"
    assert code[at + 2].startswith("  ● experts.*.*.bias ×21 0.006775–")


def test_what_is_in_every_round_of_a_loop_is_shown_once() -> None:
    """As ``--focus pi`` of a program that asks two networks by turns."""
    program = Program()
    states = [program.leaf(name, data=(1.0,)) for name in ("x", "y")]
    ends = []
    for _ in range(20):
        for name, state in zip(("pi", "vf"), states, strict=True):
            program.enter(name, "Net")
            value = state
            for op in ("Tanh", "Exp"):
                value = program.op(f"{op}Backward0", [(value, 1.0)], (1.0,), f"{name}.{op}")
            program.exit()
            ends.append(program.op("SqueezeBackward0", [(value, 1.0)], (1.0,), f"{name}(s)"))
    loss = program.op("StackBackward0", [(one, 1.0) for one in ends], (1.0,))
    report = program.report((loss, (1.0,)))
    text = shown(report, "tree", Folding(focus="pi"))
    rows = text.split("\n\n")[0].splitlines()
    assert len(rows) < 20, text
    assert "a loop drawn once for 20" in text
    assert "▾ Squeeze → Exp → Tanh ×20  " in text and "▸ Squeeze → Exp → Tanh  " in text
    assert re.findall(r"┊.*○ (\w+) ", text) == ["Squeeze", "Exp", "Tanh"], text


def test_what_the_loop_begins_with_is_not_drawn_as_another_operand() -> None:
    """``0 + x`` has its tensor in another slot than ``y + x``."""
    program = Program()
    x = program.leaf("x", data=(1.0,))
    total = None
    for _ in range(20):
        program.enter("pi", "Net")
        x = program.op("TanhBackward0", [(x, 1.0)], (1.0,), "pi.tanh")
        program.exit()
        part = program.op("MulBackward0", [(x, 1.0)], (1.0,), "pi(x)*2")
        ends = [(part, 1.0)] if total is None else [(total, 1.0), (part, 1.0)]
        total = program.op("AddBackward0", ends, (1.0,), "total + pi(x)*2")
    assert total is not None
    text = shown(program.report((total, (1.0,))), "tree", Folding(focus="pi"))
    assert "a loop drawn once for 20" in text
    assert len(re.findall(r"┊.*pi\(x\)\*2", text)) == 2, text


def lines_run(operations: int) -> int:
    """How many lines of the folding run where three rounds of so many operations are closed."""
    program = Program()
    x = total = program.leaf("x", data=(1.0,))
    for number in range(3):
        program.enter(f"experts.{number}", "Expert")
        value = x
        for place in range(operations):
            value = program.op(f"Op{place % 7}Backward0", [(value, 1.0)], (1.0,), f"y{place % 97}")
        program.exit()
        total = program.op("AddBackward0", [(total, 1.0), (value, 1.0)], (1.0,), "total")
    graph = program.report((total, (1.0,)), backward=False).graph
    lines = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        lines += event == "line" and "simplify" in frame.f_code.co_filename
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        view = simplify(graph, Folding(focus="experts.1"))
    finally:
        sys.settrace(before)
    closed = next(item for item in view.items if item.title == "experts.2")
    assert len(closed.called) == operations
    return lines


def test_folding_takes_twice_as_long_for_rounds_that_are_twice_as_long() -> None:
    assert lines_run(1200) < 2.5 * lines_run(600)


def test_what_is_called_by_a_number_has_what_it_is_in_before_it() -> None:
    program = Program()
    x = program.leaf("x", data=(1.0,))
    for number in range(5):
        program.enter(f"dec.{number}", "Sequential")
        for place, kind in enumerate(
            ("Conv2d", "BatchNorm2d", "Conv2d", "ReLU", "Tanh", "Exp", "Sin")
        ):
            program.enter(f"dec.{number}.{place}", kind)
            for op in (kind, "View"):
                x = program.op(f"{op}Backward0", [(x, 1.0)], (1.0,), f"{op}(x)")
            program.exit()
        program.exit()
    text = shown(program.report((x, (1.0,))), "tree", Folding(depth=2))
    assert "dec.*.1 BatchNorm2d" in text, text
    assert not re.search(r"[▸○] \d+ ", text)


def test_equal_loops_that_are_drawn_once_are_counted_in_one_word() -> None:
    program = Program()
    x = program.leaf("x", data=(1.0,))
    for _ in range(8):
        for _ in range(8):
            for _ in range(8):
                for op in ("Sin", "Cos"):
                    x = program.op(f"{op}Backward0", [(x, 1.0)], (1.0,), f"{op}(x)")
            x = program.op("ExpBackward0", [(x, 1.0)], (1.0,), "exp(x)")
        x = program.op("TanhBackward0", [(x, 1.0)], (1.0,), "tanh(x)")
    text = shown(program.report((x, (1.0,))), "tree", Folding(focus="exp(x)"))
    assert "drawn once" in text
    words = re.findall(r"a loop drawn once for \d+", text)
    assert len(set(words)) == len(words), text


HELPED = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
def helper(x):
    return torch.relu(torch.sigmoid(net(x)) - 0.1)
x, last = torch.randn(3, 4), [None, None]
{before}
for step in range(7):
{body}
x.sum().backward()
"""
STEPS = """
    new = helper(x)
    made = new * 1.9
    if last[0] is not None:
        made = made - last[0] * 1.3
    if last[1] is not None:
        made = made + last[1] * 0.4
    x, last = x + made * 0.1, [new, last[0]]
"""
LATE = """
    if step > 0:
        x = torch.exp(x) * 0.2
    x = helper(x)
    x = torch.cos(x * 2)
"""


@pytest.mark.parametrize(
    ("before", "body", "titles", "first"),
    [
        # What a helper made before the loop is none of its rounds.
        ("x = helper(x)", "    x = torch.cos(helper(x))", [], 1),
        ("", STEPS, ["round 1", "round 2"], 3),
        ("", LATE, ["first round"], 2),
    ],
)
def test_rounds_are_counted_as_the_program_counts_them(
    before: str, body: str, titles: list[str], first: int, session: Session
) -> None:
    graph = session.look_at(str(session.write(HELPED.format(before=before, body=body)))).graph
    for folding in (Folding(), Folding(at_once=True)):
        view = simplify(graph, folding)
        prove(view, graph)
        (others,) = [item for item in view.items if item.kind == "repeat"]
        assert [one.name[-1] for one in others.rounds] == [*"7654321"[: 8 - first]]
        assert [item.title for item in view.items if item.kind == "begun"][::-1] == titles
    # In a picture the weights of several boxes are one, or their arrows would cross.
    assert [one.title for one in view.items if one.kind == "leaves"] == ["0.*, 2.*"] * (first == 3)


SHARED = """
import torch
from torch import nn

torch.manual_seed(0)
sizes = (16, 32), (32, 32), (32, 1)
first, second, last = (nn.Linear(*size) for size in sizes)
critic = nn.Sequential(first, nn.LeakyReLU(0.2), second, nn.LeakyReLU(0.2), last)
real, fake = torch.randn(8, 16), torch.randn(8, 16)

def penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slope.norm(dim=1) - 1) ** 2).mean()

terms = [critic(fake).mean(), -critic(real).mean(), 10 * penalty(critic, real, fake)]
loss = terms[0] + terms[1] + terms[2]
loss.backward()
"""


def test_leaves_that_are_one_box_tell_how_many_cancel(session: Session) -> None:
    path = str(session.write(SHARED))
    scope: dict[str, Any] = {}
    exec(SHARED.replace("loss.backward()", ""), scope)
    leaves = [*scope["critic"].parameters()][:5]  # the last bias is in no penalty
    made = (torch.autograd.grad(term, leaves, retain_graph=True) for term in scope["terms"])
    each = [
        [float(one.norm()) for one in (*parts, sum(parts))] for parts in zip(*made, strict=True)
    ]
    opposed = [one for one in each if one[-1] < 0.5 * math.hypot(*one[:-1])]
    most = max(1 - one[-1] / sum(one[:-1]) for one in opposed)
    told = f"{len(opposed)} of 5 cancel up to {100 * most:.3g} %"
    assert told in session.cli("backward", path).out
    assert told in session.cli("backward", path, "--format", "dot").out


VIEWS = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(16)))
made = net(torch.randn(8, 4))
turned = made.transpose(0, 1).reshape(-1).unsqueeze(0)
loss = turned.square().mean()
loss.backward()
"""


def test_views_of_one_another_are_drawn_as_one(session: Session) -> None:
    path = str(session.write(VIEWS))
    report = session.look_at(path)
    view = simplify(report.graph, Folding(at_once=True))
    prove(view, report.graph)
    (one,) = [item for item in view.items if item.kind == "views"]
    assert one.title == "Unsqueeze · UnsafeView · Clone · Transpose"
    scope: dict[str, Any] = {}
    exec(VIEWS.replace("loss.backward()", ""), scope)
    ends = torch.autograd.grad(scope["loss"], (scope["turned"], scope["made"]))
    entering = ViewGradients(report.graph, report.passes[0], view).entering(one).norm
    for gradient in ends:  # of any shape the same
        assert float(entering or 0) == pytest.approx(float(gradient.norm()), rel=1e-6)
    tree = session.cli("show", "report.json").out
    (row,) = [line for line in tree.splitlines() if "Unsqueeze · " in line]
    assert "turned = made.transpose" in row
    assert "1 chain of views as one" in tree
    for options in (["--all"], ["--names", "torch"]):
        whole = session.cli("show", "report.json", *options).out
        assert "Unsqueeze" in whole and "Unsqueeze · " not in whole
    # Of what is to be told it stays apart, as where a hook changes a gradient.
    told = Folding(at_once=True, told=frozenset(one.members[1:2]))
    apart = [item.title for item in simplify(report.graph, told).items]
    assert {"Unsqueeze", "UnsafeView", "Clone · Transpose"} <= {*apart}
