"""Folding: what is folded into what, and that nothing is ever lost."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.model.invariants import check
from gradscope.model.report import GradientInfo, Report
from gradscope.render import Options, as_text
from gradscope.simplify import Folding
from gradscope.simplify.draft import find_repeats
from gradscope.simplify.folded import simplify
from gradscope.simplify.for_pages import for_page
from gradscope.simplify.gradients import (
    MOST_PARTS,
    SMALL,
    ProfileRow,
    Sums,
    ViewGradients,
    combine,
    profile_of,
)
from gradscope.simplify.grouping import hierarchy_of
from gradscope.simplify.hierarchy import Hierarchy
from gradscope.simplify.view import Item, View
from tests.program import Program, Value
from tests.proven import prove
from tests.reports import CASES, chain, doublings, recurrent, towers, transformer, unet

FOLDINGS = [
    Folding(),
    Folding(at_once=True),
    Folding(all=True),
    *(Folding(depth=depth) for depth in (1, 2, 3, 9)),
]


def titles(view: View) -> list[str]:
    return [item.title for item in view.items]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("folding", FOLDINGS, ids=str)
def test_nothing_is_lost(case: str, folding: Folding) -> None:
    graph = CASES[case]().graph
    prove(simplify(graph, folding), graph)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("folding", FOLDINGS, ids=str)
def test_what_adds_up_on_a_link_is_all_that_enters(case: str, folding: Folding) -> None:
    report = CASES[case]()
    graph = report.graph
    for backward in report.passes[:1]:
        view = simplify(graph, folding)
        gradients = ViewGradients(graph, backward, view)
        for link in filter(gradients.adds_up, view.links):
            target = view.items[link.target]
            is_once = target.template is not None
            inside = {*(target.rounds[0].nodes if is_once else target.members)}
            edges = enumerate(graph.edges)
            into = {at for at, edge in edges if edge.target in inside and edge.source not in inside}
            # A link straight to a parameter has what turns that behind it.
            assert into == {*link.edges} or {*view.on_links}.intersection(
                graph.edges[edge].target for edge in link.edges
            )
            assert not inside.intersection(root.node for root in graph.roots)


@pytest.mark.parametrize("layers", [12, 48])
def test_equal_blocks_are_drawn_once_with_every_round(layers: int) -> None:
    graph = transformer(layers).graph
    view = simplify(graph, Folding(limit=15))
    prove(view, graph)
    (blocks,) = view.templates
    assert (blocks.title, blocks.type, blocks.count) == ("gpt.h.*", "Block", layers)
    assert [one.name for one in blocks.rounds] == [f"gpt.h.{i}" for i in reversed(range(layers))]
    drawn = [item for item in view.items if item.template == 0]
    assert [item.title for item in drawn if item.folded] == [
        f"gpt.h.*.{name}" for name in ("mlp", "ln_mlp", "attn", "ln_attn")
    ]
    for item in drawn:
        assert len(item.rounds) == layers
        assert sorted(node for one in item.rounds for node in one.nodes) == list(item.members)
    inside = sum(len(one.nodes) for one in blocks.rounds)
    assert inside == sum(len(item.members) for item in drawn)


@pytest.mark.parametrize("entries", [120, 121, 128, 129, 193, 500, 8000])
def test_parts_of_what_is_long_are_of_like_size(entries: int) -> None:
    hierarchy = hierarchy_of(chain(entries, distinct=True).graph)
    for group in range(len(hierarchy.groups)):
        sizes = [
            hierarchy.sizes[part]
            for part in hierarchy.children[group]
            if hierarchy.groups[part].kind == "part"
        ]
        assert max(sizes, default=1) <= 2 * min(sizes, default=1)


def test_depth_counts_calls_from_the_outermost() -> None:
    graph = transformer().graph
    assert titles(simplify(graph, Folding(depth=1))) == ["NllLoss", "LogSoftmax", "gpt"]
    assert "gpt.h.*.attn.c_fc" in titles(simplify(graph, Folding(depth=4)))


@pytest.mark.parametrize("below", ["bottom", "ups.0"])
def test_a_loop_over_a_list_of_modules_is_named_by_them(below: str) -> None:
    """As the way up of a UNet: what is below it looks like the end of a round."""
    program = Program("list.py")
    x = program.leaf("x")

    def called(path: str, kind: str, inner: Value) -> Value:
        program.enter(path, kind)
        first = program.op(f"{kind}Backward0", [(inner, 1)], (1,))
        made = program.op("ReluBackward0", [(first, 1)], (1,))
        program.exit()
        return made

    y = called(below, "Double", x)
    for number in range(1, 9, 2):
        up = called(f"ups.{number}", "Up", y)
        joined = program.op("CatBackward0", [(up, 1), (x, 1)], (1,))
        y = called(f"ups.{number + 1}", "Double", joined)
    report = program.report((y, (1.0,)))
    hierarchy = hierarchy_of(report.graph)
    (repeat,) = [group for group in hierarchy.groups if group.kind == "repeat"]
    assert (repeat.title, repeat.count) == ("ups.*", 4)
    assert hierarchy.template(repeat.id)
    # The same name as theirs turns no round.
    assert repeat.type == ("Up Double" if below == "bottom" else "Double Up")


@pytest.mark.parametrize(
    ("paths", "title"),
    [(("stem", "body", "neck"), "stem\u2013neck"), (("9", "10", "11"), "9\u201311")],
)
def test_modules_whose_names_differ_are_named_by_the_ends(
    paths: tuple[str, ...], title: str
) -> None:
    program = Program()
    x = program.leaf("x")
    for path in paths:
        program.enter(path, "Block")
        x = program.op("TanhBackward0", [(program.op("ExpBackward0", [(x, 1)], (1,)), 1)], (1,))
        program.exit()
    groups = hierarchy_of(program.report((x, (1.0,))).graph).groups
    assert [group.title for group in groups if group.kind == "repeat"] == [title]


@pytest.mark.parametrize(
    ("around", "helper", "module", "title"),
    [
        ("solve", "solve", "Field", "repeat in solve()"),
        ("Solver.forward", "Solver.forward", "Field", "repeat in Solver.forward()"),
        # Of both it cannot be said in which the loop is.
        ("solve", "step", "Field", ""),
        ("Solver.forward", "step", "Field", ""),
        ("<module>", "<module>", "Field", ""),
    ],
)
def test_a_repeat_of_many_operations_is_named_by_the_only_function_that_it_is_in(
    around: str, helper: str, module: str, title: str
) -> None:
    program = Program()
    x = program.leaf("x")
    program.enter("", "Solver")
    for _ in range(5):
        program.enter("field", module)
        program.function = f"{module}.forward"
        x = program.op("TanhBackward0", [(x, 1)], (1,), "field(x)")
        program.exit()
        program.function = around
        x = program.op("AddBackward0", [(x, 1)], (1,), "x + 1")
        program.function = helper
        for op in ("Exp", "Sin", "Cos"):
            x = program.op(f"{op}Backward0", [(x, 1)], (1,), f"{op}(x)")
    program.function = "<module>"
    groups = hierarchy_of(program.report((x, (1.0,))).graph).groups
    (found,) = [group.title for group in groups if group.kind == "repeat"]
    assert found == (title or "Cos → Sin → Exp → Add → Tanh")


def test_what_only_some_rounds_have_is_drawn_with_those_that_have_it() -> None:
    program = Program()
    x = program.leaf("x")
    for number in range(20):
        program.enter(f"m.{number}", "M")
        inputs = [(x, 1.0)]
        if number % 3 == 0:
            inputs.append((program.leaf(f"m.{number}.w"), 1.0))
        x = program.op("MulBackward0", inputs, (1.0,), "x*w")
        x = program.op("SinBackward0", [(x, 1.0)], (1.0,), "x.sin()")
        program.exit()
    graph = program.report((x, (1.0,))).graph
    view = simplify(graph, Folding(limit=10))
    prove(view, graph)
    assert len(view.templates) == 1
    assert [(item.title, len(item.members)) for item in view.items] == [
        ("Sin", 20),
        ("Mul", 20),
        ("m.*.w", 7),
        ("x", 1),
    ]


def test_a_way_to_a_leaf_is_drawn_block_by_block_to_that_leaf() -> None:
    graph, leaf = transformer().graph, "gpt.h.3.attn.c_fc.weight"
    view = simplify(graph, Folding(path=leaf))
    prove(view, graph)
    assert not view.templates and "gpt.h.7" in titles(view)
    # Though its module is closed.
    closed = simplify(graph, Folding(path=leaf, depth=2))
    prove(closed, graph)
    assert leaf in titles(closed)


def test_a_module_called_twice_is_two_items_and_its_shared_weight_its_own() -> None:
    program = Program()
    weight = program.leaf("lin.weight")
    x = program.leaf("x")
    for _ in range(2):
        program.enter("lin", "Linear")
        x = program.op("MmBackward0", [(x, 1), (weight, 1)], (1,), "lin(x)")
        x = program.op("ReluBackward0", [(x, 1)], (1,), "lin(x)")
        program.exit()
    report = program.report((x, (1.0,)))
    view = simplify(report.graph, Folding(depth=1))
    assert titles(view) == ["lin", "lin", "x", "lin.weight"]
    prove(view, report.graph)


def test_a_module_entered_again_from_outside_is_opened_rather_than_drawn_as_a_cycle() -> None:
    program = Program()
    x = program.leaf("x")
    program.enter("m", "M")
    first = program.op("SinBackward0", [(x, 1)], (1,), "sin(x)")
    program.inside = None
    outside = program.op("CosBackward0", [(first, 1)], (1,), "cos(y)")
    program.inside = 0
    last = program.op("TanBackward0", [(outside, 1)], (1,), "tan(z)")
    report = program.report((last, (1.0,)))
    view = simplify(report.graph, Folding(depth=1))
    prove(view, report.graph)
    assert titles(view) == ["Tan", "Cos", "Sin", "x"]


def loop(body: Sequence[str], rounds: int, leaf_each_round: bool = False) -> Report:
    """A loop over several operations, each with the same leaf or a new one."""
    program = Program()
    x = program.leaf("x")
    w = x if leaf_each_round else program.leaf("w")
    for number in range(rounds):
        for op in body:
            side = program.leaf(f"p.{number}") if leaf_each_round else w
            x = program.op(f"{op}Backward0", [(x, 1), (side, 1)], (1,), f"{op}(x, w)")
    return program.report((x, (1.0,)))


def test_leaves_of_single_rounds_fold_with_them_and_the_end_of_the_chain_does_not() -> None:
    report = loop(["Mul"], 40, leaf_each_round=True)
    view = simplify(report.graph)
    assert titles(view)[1:] == ["x"]
    assert len(view.items[0].members) == 80


def test_a_root_inside_a_chain_stays_visible() -> None:
    program = Program()
    x = program.leaf("x")
    steps: list[Value] = []
    for _ in range(10):
        x = program.op("MulBackward0", [(x, 2)], (1,), "x*2")
        steps.append(x)
    report = program.report((steps[-1], (1.0,)), (steps[4], (1.0,)))
    view = simplify(report.graph)
    assert [item.count for item in view.items] == [5, 5, 1]
    assert view.roots == (0, 1)


def test_a_root_that_does_not_lead_to_the_leaf_of_a_path_stands_alone() -> None:
    program = Program()
    a, b = program.leaf("a"), program.leaf("b")
    roots = [program.op("MulBackward0", [(leaf, 2)], (1,), f"{leaf}*2") for leaf in (a, b)]
    graph = program.report(*((root, (1.0,)) for root in roots)).graph
    view = simplify(graph, Folding(path="b"))
    prove(view, graph)
    assert [view.items[root].members for root in view.roots] == [
        (root.node,) for root in graph.roots
    ]
    assert len(view.items) == 3 and len(view.links) == 1


@given(st.lists(st.integers(0, 3), max_size=200))
def test_repeats_are_real_and_do_not_overlap(words: list[int]) -> None:
    end = 0
    for start, period, count in find_repeats(words):
        assert start >= end and count >= 3
        end = start + period * count
        assert words[start:end] == words[start : start + period] * count


@st.composite
def programs(draw: st.DrawFn) -> Report:
    """Random graphs with shared leaves, fan-in, modules, parallel edges and several roots."""
    program = Program()
    values = [program.leaf(f"leaf{i}", data=(1.0,)) for i in range(draw(st.integers(1, 4)))]
    for _ in range(draw(st.integers(1, 40))):
        move = draw(st.sampled_from(["op", "op", "op", "enter", "exit"]))
        if move == "enter":
            program.enter(draw(st.sampled_from("mn")), "Module")
        elif move == "exit" and program.inside is not None:
            program.exit()
        else:
            inputs = draw(st.lists(st.sampled_from(values[-6:]), min_size=1, max_size=3))
            factors = draw(st.lists(st.sampled_from([1.0, -1.0, 0.0, 2.5]), min_size=3, max_size=3))
            op = draw(st.sampled_from(["MulBackward0", "SinBackward0"]))
            values.append(program.op(op, list(zip(inputs, factors, strict=False)), (1.0,), op))
    ends = [
        value
        for value in values
        if not any(value in _sources(step.inputs) for step in program.steps)
    ]
    return program.report(*((value, (1.0,)) for value in ends))


def _sources(inputs: Sequence[tuple[Value, object]]) -> list[Value]:
    return [value for value, _ in inputs]


@given(programs(), st.sampled_from([*FOLDINGS, Folding(limit=3)]))
def test_nothing_is_lost_of_any_graph(report: Report, folding: Folding) -> None:
    check(report)
    prove(simplify(report.graph, folding), report.graph)


@st.composite
def networks(draw: st.DrawFn) -> Report:
    """Loops and functions that work on several networks by turns, which only the loss brings
    together."""
    program = Program()
    states = [program.leaf(f"x{i}", data=(1.0,)) for i in range(draw(st.integers(1, 3)))]
    ops = itertools.count()
    for _ in range(draw(st.integers(1, 3))):
        length = draw(st.integers(1, 6)) if draw(st.booleans()) else draw(st.integers(60, 150))
        chosen = st.tuples(st.sampled_from(range(len(states))), st.sampled_from(["", "f", "g"]))
        body = draw(st.lists(chosen, min_size=length, max_size=length))
        lines = [next(ops) for _ in body]
        for _ in range(draw(st.integers(1, 5)) if length < 10 else 1):
            for line, (state, function) in zip(lines, body, strict=True):
                program.line, program.function = line + 1, function
                name = f"Op{line % 5}Backward0"
                states[state] = program.op(name, [(states[state], 1.0)], (1.0,), f"y{line}")
    program.function = ""
    return program.report(
        (program.op("SumBackward0", [(one, 1.0) for one in states], (1.0,)), (1.0,))
    )


def pieces(report: Report, item: Item) -> int:
    """In how many parts between which nothing flows an item falls; equal places of the rounds of a
    repeat are one."""
    ops = [node for node in item.members if report.graph.nodes[node].kind != "leaf"]
    rounds = [[node for node in one.nodes if node in ops] for one in item.rounds] or [ops]
    standing = {node: rounds[0][at] for one in rounds for at, node in enumerate(one)}
    joined = {node: {node} for node in rounds[0]}
    for edge in report.graph.edges:
        if edge.source in standing and edge.target in standing:
            both = joined[standing[edge.source]] | joined[standing[edge.target]]
            joined.update(dict.fromkeys(both, both))
    return len({id(one) for one in joined.values()})


@given(networks(), st.sampled_from([*FOLDINGS, Folding(limit=3)]))
def test_what_is_folded_hangs_together(report: Report, folding: Folding) -> None:
    view = simplify(report.graph, folding)
    prove(view, report.graph)
    folded = [item for item in view.items if item.folded and item.kind != "module"]
    assert all(pieces(report, item) == 1 for item in folded)


def test_a_closed_module_reads_what_enters_it() -> None:
    report = transformer()
    view = simplify(report.graph, Folding(depth=1))
    gradients = ViewGradients(report.graph, report.passes[0], view)
    model = view.items[-1]
    assert gradients.entering(model) == gradients.link(view.links[-1])
    inside = [float(gradients.leaf(i).norm or 0) for i in range(len(report.graph.leaves))]
    together = gradients.parameters(model.members)
    assert together is not None
    assert float(together.norm or 0) == pytest.approx(sum(x * x for x in inside) ** 0.5)


@pytest.mark.parametrize(
    ("factors", "share"),
    [
        (
            [(3.0, 3.0), (-2.9, -2.8)],
            1 - math.hypot(0.1, 0.2) / (math.hypot(3, 3) + math.hypot(2.9, 2.8)),
        ),
        ([(3.0, 3.0), (-3.0, -3.0)], 1.0),
        ([(1.0, 1.0), (-0.5, -0.5), (-0.5, -0.5)], 1.0),
        ([(1.0, 0.0), (0.0, 1.0)], None),  # at right angles
        ([(1.0, 1.0), (-0.2, -0.2)], None),
        ([(1.0, 1.0)], None),
    ],
)
def test_gradients_that_oppose_each_other(
    factors: list[tuple[float, float]], share: float | None
) -> None:
    program = Program()
    x = program.leaf("x", data=(1.0, 1.0), shape=(2,))
    h = program.op("SinBackward0", [(x, 1.0)], (1.0, 1.0))
    parts = [(program.op("MulBackward0", [(h, factor)], (1.0, 1.0)), 1.0) for factor in factors]
    loss = program.op("AddBackward0", parts, (1.0, 1.0))
    report = program.report((loss, (1.0, 1.0)))
    (node,) = [node.id for node in report.graph.nodes if node.op == "SinBackward0"]
    for altered in ((), (node,)):
        backward = msgspec.structs.replace(report.passes[0], altered=altered)
        gradients = ViewGradients(report.graph, backward, simplify(report.graph))
        expected = None if altered or share is None else pytest.approx(share)
        assert gradients.cancelled(node) == expected
    options = Options(folding=Folding(all=True))
    for format in ("tree", "dot"):
        assert ("gradients cancel" in as_text(report, format, options)) == (share is not None)


@pytest.mark.parametrize(
    ("parts", "state", "norm"),
    [
        ([GradientInfo("finite", 3.0), GradientInfo("finite", 4.0)], "finite", 5.0),
        ([GradientInfo("none"), GradientInfo("zero", 0.0)], "zero", 0.0),
        ([GradientInfo("none"), GradientInfo("not reached")], "none", None),
        (
            [GradientInfo("finite", 1.0), GradientInfo("non-finite", "NaN", nan=2)],
            "non-finite",
            "NaN",
        ),
        ([GradientInfo("finite"), GradientInfo("zero")], "finite", None),
        ([], "not reached", None),
    ],
)
def test_gradients_taken_together(parts: list[GradientInfo], state: str, norm: object) -> None:
    whole = combine(parts)
    assert (whole.state, whole.norm) == (state, norm)
    assert whole.nan == sum(part.nan for part in parts)


def line_of(*factors: float) -> Report:
    """A chain from a leaf to the loss; the gradient takes the factors from their end."""
    program = Program()
    y = program.leaf("x")
    for number, factor in enumerate(factors):
        program.line = number + 2
        y = program.op("MulBackward0", [(y, factor)], (1.0,), f"y*{number}")
    return program.report((y, (1.0,)))


PROFILES: list[tuple[tuple[float, ...], int, list[ProfileRow]]] = [
    (
        (10, 10, 10),
        9,
        [
            ProfileRow(1, 1, 1, None, 0, 0, 1),
            ProfileRow(10, 10, 10, None, 0, 0, 1),
            ProfileRow(100, 100, 100, None, 0, 0, 1),
            # Past leaves the stream flows on as it was.
            ProfileRow(100, 100, 100, 1000, 0, 0, 1),
        ],
    ),
    (
        (10, 10, 10),
        2,
        [ProfileRow(1, 10, 10, None, 0, 0, 2), ProfileRow(100, 100, 100, 1e3, 0, 0, 2)],
    ),
    # Two zeros, and the leaf's; then what is not finite.
    ((1, 1, 0, 2), 1, [ProfileRow(1, 2, 2, None, 0, 3, 2)]),
    ((1, math.inf, 2), 1, [ProfileRow(1, 2, 2, None, 2, 0, 2)]),
]


@pytest.mark.parametrize(("factors", "most", "rows"), PROFILES)
def test_a_profile_says_what_enters_the_nodes_in_backward_order(
    factors: tuple[float, ...], most: int, rows: list[ProfileRow]
) -> None:
    report = line_of(*factors)
    assert profile_of(report.graph, report.passes[0], most) == rows


def residual(branch: float, after: float = 1.0) -> Report:
    """``h + branch*after*h`` of ``h = 2*x``."""
    program = Program()
    h = program.op("MulBackward0", [(program.leaf("x"), 2)], (1.0,), "2*x", "h")
    part = program.op("MulBackward0", [(h, branch)], (1.0,), "b*h")
    whole = program.op("ExpBackward0", [(part, after)], (1.0,), "f(b*h)")
    return program.report(
        (program.op("AddBackward0", [(h, 1), (whole, 1)], (1.0,), "h + f"), (1.0,))
    )


RESIDUALS = {
    0.25: "80 % by skip",
    1.0: "50 % by skip",
    -0.9: "53 % by skip · 2 gradients cancel 94.7 %",
}


@pytest.mark.parametrize("branch", RESIDUALS)
def test_a_residual_sum_says_which_share_came_through_the_skip(branch: float) -> None:
    report = residual(branch)
    gradients = ViewGradients(report.graph, report.passes[0], simplify(report.graph))
    (node,) = (one.id for one in report.graph.nodes if one.variable == "h")
    assert gradients.residual(node) == pytest.approx(1 / (1 + abs(branch)))
    for format in ("tree", "dot"):
        assert RESIDUALS[branch] in as_text(report, format)
    # Blocks that are drawn once say the range of their skips.
    text = as_text(transformer(), "tree", Options(width=200))
    assert re.search(r"┊ ○ Add .* · \d+(\u2013\d+)? % by skip", text)


def test_a_sum_is_no_residual_without_an_addition_or_beside_it() -> None:
    program = Program()
    x = program.leaf("x")
    h = program.op("MulBackward0", [(x, 2)], (1.0,), "2*x", "h")
    other = program.op("ExpBackward0", [(h, 3)], (1.0,), "exp(h)")
    added = program.op("AddBackward0", [(h, 1), (program.leaf("b"), 1)], (1.0,), "h + b")
    report = program.report((program.op("MulBackward0", [(other, 1), (added, 1)], (1.0,)), (1.0,)))
    gradients = ViewGradients(report.graph, report.passes[0], simplify(report.graph))
    assert [gradients.residual(node.id) for node in report.graph.nodes] == [None] * 6
    assert "from exp(h)" in as_text(report, "tree")


@pytest.mark.parametrize("shape", [(2,), (1,)])
def test_a_bias_of_each_round_is_no_skip(shape: tuple[int, ...]) -> None:
    program = Program()
    h = program.leaf("x", data=(1.0, 1.0), shape=(2,))
    bias = program.leaf("bias", data=(1.0,), shape=shape)
    for _ in range(2):
        h = program.op("AddBackward0", [(h, 1), (bias, 1)], (1.0, 1.0), "h + bias")
    report = program.report((h, (1.0, 1.0)))
    (leaf,) = [one.node for one in report.graph.leaves if one.names == ("bias",)]
    share = Sums(report.graph, report.passes[0]).residual(leaf)
    assert (share is None) == (shape == (1,))


@pytest.mark.parametrize("more", [0, 1])
def test_a_sum_of_very_many_is_no_residual(more: int) -> None:
    program = Program()
    h = program.op("MulBackward0", [(program.leaf("x"), 2)], (1.0,))
    parts = [program.op("ExpBackward0", [(h, 1)], (1.0,)) for _ in range(MOST_PARTS - 1 + more)]
    loss = program.op("AddBackward0", [(part, 1) for part in (h, *parts)], (1.0,))
    report = program.report((loss, (1.0,)))
    shares = Sums(report.graph, report.passes[0]).shares()["skip"]
    assert list(shares.values()) == ([] if more else [pytest.approx(1 / MOST_PARTS)])


RIVERS = {
    (0.5,) * SMALL: ("3.469e-18 to 0.5", "█"),
    (*(1.0,) * SMALL, math.inf): ("not finite at 61 nodes", "✖"),
    (*(1.0,) * SMALL, 0.0): ("1 · 0 at 61 nodes", "0"),
    (0.0, *(1.0,) * SMALL): ("1 · 0 at x", "0"),
}


@pytest.mark.parametrize("factors", RIVERS)
def test_the_river_is_a_line_above_a_tree_that_is_not_small(factors: tuple[float, ...]) -> None:
    lines = as_text(line_of(*factors), "tree").splitlines()
    (line,) = (line for line in lines if line.startswith("median ‖g‖ from the loss on"))
    assert all(sign in line for sign in RIVERS[factors])
    plain = as_text(line_of(*factors), "tree", Options(unicode=False))
    assert "|g| from the loss on" in plain and plain.isascii()
    assert "from the loss on  " not in as_text(line_of(*factors[-9:]), "tree")


@pytest.mark.parametrize("case", [*CASES, "unet", "towers"])
def test_a_page_takes_no_node_out_of_its_module(case: str) -> None:
    before = hierarchy_of({**CASES, "unet": unet, "towers": towers}[case]().graph)
    after = for_page(before)
    assert [group.id for group in after.groups] == list(range(len(after.groups)))

    def around(hierarchy: Hierarchy, group: int | None) -> list[str]:
        found = []
        while group is not None:
            one = hierarchy.groups[group]
            if one.kind not in ("repeat", "leaves"):
                found.append(f"{one.kind} {one.title}")
            group = one.parent
        return found

    for was, now in zip(before.owner, after.owner, strict=True):
        assert around(after, now) == around(before, was)


@pytest.mark.parametrize("levels", [3, 8])
def test_the_sides_of_a_unet_are_taken_apart(levels: int) -> None:
    before = hierarchy_of(unet(levels).graph)
    assert [group.title for group in before.groups if group.kind == "repeat"] == ["up.*"]
    after = for_page(before)
    assert not [group for group in after.groups if group.kind == "repeat"]
    rounds = [group for group in after.groups if re.fullmatch(r"up\.\d", group.title)]
    assert [group.parent for group in rounds] == [0] * levels


@pytest.mark.parametrize("is_timed", [False, True])
@pytest.mark.parametrize("levels", [2, 3, 8])
def test_a_picture_of_a_unet_has_two_sides(levels: int, is_timed: bool) -> None:
    graph = unet(levels, is_timed=is_timed).graph
    view = simplify(graph, Folding(at_once=True))
    prove(view, graph)
    assert view.sides
    modules = [graph.module_of(graph.nodes[item.members[0]]) for item in view.items]
    across = [view.links[n] for n in view.sides.across][:levels]
    rights, lefts = (
        [modules[end] for end in ends]
        for ends in zip(*((one.source, one.target) for one in across), strict=True)
    )
    assert [name[:4] for name in rights] == [f"up.{level}" for level in reversed(range(levels))]
    downs = [f"down{level}" for level in range(levels)]
    assert lefts == ([""] * levels if is_timed else downs)
    lower = {modules[item] for item in view.sides.up}
    assert lower - {""} == set(downs)


@pytest.mark.parametrize(
    "make", [transformer, recurrent, lambda: chain(50), doublings, towers, lambda: unet(9)]
)
def test_what_repeats_and_faces_nothing_stays_one(make: Callable[[], Report]) -> None:
    graph = make().graph
    before = hierarchy_of(graph)
    is_shared = make is towers  # whose weights are one group then
    assert is_shared or for_page(before).groups == before.groups
    assert simplify(graph, Folding(at_once=True)).sides is None


@pytest.mark.parametrize(("path", "title"), [("D.", "D.*"), ("", "0.*, 2.*")])
def test_weights_that_two_calls_share_are_one_group(path: str, title: str) -> None:
    report = towers(path)
    shared = for_page(hierarchy_of(report.graph))
    (group,) = (one for one in shared.groups if one.kind == "leaves")
    assert (group.title, group.count, group.parent) == (title, 4, 0)
    assert shared.nodes[group.id] == sorted(leaf.node for leaf in report.graph.leaves)
