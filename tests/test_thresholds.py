"""The numbers that decide: for each a report that is just over its edge, and one that is just not.

A change of any of these numbers by a tenth, or by one, must fail here.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import gradscope
from gradscope.analyses.doctor.sampling_policy import SamplingPolicy
from gradscope.model.observations import (
    Activity,
    Cut,
    Failure,
    Finding,
    Intake,
    MistakeKind,
    MistakenCall,
    Raiser,
    Step,
    StepEffect,
)
from gradscope.model.ranks import OneRank
from gradscope.model.report import Report
from gradscope.model.studies import CallCheck, GradientComparison
from gradscope.rules import diagnose
from gradscope.rules.questions.stops import FLAT, UNDERFLOW
from gradscope.simplify import Folding
from gradscope.simplify.folded import simplify
from tests.program import Program, in_turn
from tests.ranks.built import parameter, with_ranks
from tests.test_diagnose import REACHED, A, B, in_half, learner, observed, plain, spoilt


def codes(report: Report) -> object:
    """The rules of all findings; that of one by itself."""
    found = tuple(finding.rule for finding in diagnose(report))
    return found[0] if len(found) == 1 else found


class Edge(NamedTuple):
    """A number, by the module it stands in and its name, and what a report is made of that is just
    over it, and of one that is just not.

    What is asked of both is what was found: all codes, or what ``ask`` asks.
    """

    number: str
    make: Callable[[Any], Report]
    over: object
    short: object
    found: object
    instead: object = ()
    ask: Callable[[Report], object] = codes


def first(what: Callable[[Finding], object]) -> Callable[[Report], object]:
    """What is asked of the first finding."""
    return lambda report: what(diagnose(report)[0])


line = first(lambda one: one.location and one.location.line)
expression = first(lambda one: one.location.expression if one.location else "")
subject = first(lambda one: one.subject)
evidence = first(lambda one: one.evidence)
last_line = first(lambda one: one.evidence[-1])
length = first(lambda one: len(one.evidence[0]))
shown = first(lambda one: len(one.evidence))
reason = first(lambda one: one.why)
is_shortened = first(lambda one: any(" more" in told for told in one.evidence))
is_cut_short = first(lambda one: "more" in one.message)
is_guard_named = first(lambda one: "does not take this branch" in one.why)


def levels(
    norms: Sequence[float], bottom: float = 1.0, head: float = 1.0, scale: float = 1.0
) -> Report:
    """A loop of layers with a weight each, at which gradients of these norms arrive, from the root
    down; the deepest has operands with ``bottom`` times that, and a leaf at the root gets ``head``.
    All of it times ``scale``."""
    program = Program()
    x = program.leaf("start")
    factors = [after / before for before, after in zip(norms, [*norms[1:], norms[-1]], strict=True)]
    for level, factor in enumerate(reversed(factors)):
        weight = program.leaf(f"layers.{level}.weight")
        program.line = 5
        operands = [(x, 1.0 if level else bottom), (weight, 1.0 if level else bottom)]
        x = program.op("MulBackward0", operands, (1.0,), "layer(x)")
        x = program.op("SinBackward0", [(x, factor)], (1.0,), "sin(layer(x))", "x")
    program.line = 6
    top = program.op("AddBackward0", [(x, 1.0), (program.leaf("head"), head)], (1.0,), "x + head")
    return program.report((top, (scale * norms[0],)))


def straight(ratio: float, count: int = 11) -> list[float]:
    """Norms from 1 to this in equal factors."""
    return [ratio ** (level / (count - 1)) for level in range(count)]


def zigzag(ratio: float, wrong: int, count: int = 21) -> list[float]:
    """Norms from 1 to this, of whose steps so many go the wrong way."""
    way = math.copysign(1.0, math.log(ratio))
    back = 1.5**-way
    right = (ratio / back**wrong) ** (1 / (count - 1 - wrong))
    norms = [1.0]
    for step in range(1, count):
        norms.append(norms[-1] * (back if step <= 2 * wrong and step % 2 == 0 else right))
    return norms


def active(op: str, shape: tuple[int, ...], saturated: float = 0.0, dead: float = 0.0) -> Report:
    """An activation with these shares."""
    report = in_turn((op, 1.0, "act(w)"), shape=shape)
    return observed(report, activities=(Activity(0, dead, saturated),))


def logarithms(count: int, inf: bool = False) -> Report:
    """So many operations on lines of their own whose result or, else, gradient is infinite."""
    program = Program()
    total = program.leaf("v")
    for line in range(count):
        program.line = line + 2
        w = program.leaf(f"w{line}")
        term = program.op("PowBackward0", [(w, 1.0 if inf else math.inf)], (1.0,), f"w{line}**2")
        total = program.op("AddBackward0", [(total, 1.0), (term, 1.0)], (1.0,), "total + term")
    report = program.report((total, (1.0,)))
    if not inf:
        return report
    report = spoilt(report, "PowBackward0", inf=1)
    return spoilt(report, "AddBackward0", inf=1)


def bad_operands(count: int) -> Report:
    """So many operands that were not finite before."""
    report = spoilt(plain(), "MulBackward0", nan=1)
    return observed(report, intakes=tuple(Intake(0, f"x{n}", nan=1) for n in range(count)))


def bad_leaves(count: int) -> Report:
    """So many leaves that are not finite themselves."""
    program = Program()
    operands = [(program.leaf(f"w{n}"), 1.0) for n in range(count)]
    report = program.report((program.op("StackBackward0", operands, (1.0,), "stack"), (1.0,)))
    leaves = tuple(
        msgspec.structs.replace(leaf, tensor=msgspec.structs.replace(leaf.tensor, nan=1))
        for leaf in report.graph.leaves
    )
    graph = msgspec.structs.replace(report.graph, leaves=leaves)
    return spoilt(msgspec.structs.replace(report, graph=graph), "StackBackward0", nan=1)


def guarded(distance: int) -> Report:
    """A root at 0, and a ``where`` so many operations after it."""
    return in_turn(
        ("SqrtBackward0", (math.nan, 0.5), "sqrt(w)"),
        *[("NegBackward0", -1.0, "-y")] * (distance - 1),
        ("WhereBackward0", (0.0, 1.0), "where(good, y, 0)"),
        shape=(2,),
    )


def tiny(op: str, received: float) -> Report:
    """A factor in float16 that sends nothing but zeros."""
    return in_half(in_turn((op, 0.0, "f(w)"), received=received))


def stepped(*steps: Step) -> Report:
    """A parameter that is learned, in these steps."""
    return observed(plain(), learners=(REACHED,), steps=steps)


def dropping(count: int) -> Report:
    """So many steps before each of which a gradient is dropped."""
    return stepped(*(Step(n, dropped=1) for n in range(count)))


def unstepped(count: int) -> Report:
    """So many backward calls of a program that ends without a step."""
    steps = tuple(Step(n) for n in range(count))
    return observed(plain(), learners=(REACHED,), steps=steps, never_stepped=True)


def out_of_order(kind: MistakeKind, times: int) -> Report:
    """A call of the loop that was so often out of order."""
    return observed(plain(), mistaken_calls=(MistakenCall(kind, A, times, other=B),))


def remade(calls: int) -> Report:
    """A parameter that one of so many backward calls has reached, made after the optimizer."""
    anew = learner("b", in_optimizer=False, reached=True, once=True, made=A, late=True)
    held = learner("w", leaf=0, reached=True, held_by=(B,))
    steps = tuple(map(Step, range(calls)))
    return observed(plain(), learners=(held, anew), optimizers=(B,), steps=steps)


def still(looks: int, share: int) -> Report:
    """So many steps that leave so many elements of 100 as they were."""
    return observed(plain(), effects=(StepEffect(A, "bfloat16", looks, 100, share),))


def piled(count: int) -> Report:
    """Steps whose gradients pile up."""
    return stepped(*(Step(n, norm=float(n), reused=1) for n in range(1, count + 1)))


def frozen(count: int) -> Report:
    """So many frozen parameters of one module."""
    learners = tuple(learner(f"m.w{n}", requires_grad=False, made=A) for n in range(count))
    return observed(plain(), learners=(REACHED, *learners), steps=(Step(1), Step(2)))


def headed(count: int) -> Report:
    """A chain of so many layers, of which the optimizer holds all but the last."""
    program = Program()
    x = program.leaf("x", shape=(1,))
    for number in range(count):
        weight = program.leaf(f"w{number}", shape=(1,))
        x = program.op("MmBackward0", [(x, 1.0), (weight, 1.0)], (1.0,), "layer(x)")
    report = program.report((x, (1.0,)))
    numbers = {leaf.names[0]: number for number, leaf in enumerate(report.graph.leaves)}
    learners = tuple(
        learner(f"m{n}.w", leaf=numbers[f"w{n}"], reached=True, in_optimizer=n < count - 1, made=0)
        for n in range(count)
    )
    return observed(report, learners=learners)


def idle(count: int, *cuts: Cut) -> Report:
    """So many parameters used at one place, from where nothing reaches the loss."""
    learners = tuple(learner(f"w{n}", used=B) for n in range(count))
    return observed(plain(), learners=(REACHED, *learners), cuts=cuts, steps=(Step(1), Step(2)))


def copied(calls: int) -> Report:
    """An optimizer that holds a copy of w, which nothing changes between so many calls."""
    return observed(
        plain(),
        learners=(
            learner("copy", in_module=False, made=B, reached=True),
            learner("w", in_module=False, in_optimizer=False, leaf=0, reached=True, used=A),
        ),
        cuts=(Cut(B, "detach", "function", ("w",), itself=True),),
        steps=tuple(Step(n + 1, nodes=2, accumulates=True) for n in range(calls)),
    )


def behind_a_cut(count: int) -> Report:
    """So many parameters behind one detach."""
    return idle(count, Cut(B, "detach", "function", tuple(f"w{n}" for n in range(count))))


def failed(length: int) -> Report:
    """A failure that torch tells with so many characters."""
    text = "grad can be implicitly created only for scalar outputs".ljust(length, ".")
    return observed(plain(), failure=Failure("Error", text, A))


def twice(op: str) -> Report:
    """A second derivative of ``cumulative_trapezoid`` that torch lacks, beside this op."""
    text = "derivative for aten::cumulative_trapezoid_backward is not implemented"
    raiser = Raiser("operation", "Error")
    failure = Failure("RuntimeError", text, in_backward=True, raiser=raiser)
    return observed(in_turn((op, 1.0, "f(w)")), failure=failure)


def hidden(count: int) -> Report:
    """So many overflows in float16 that a division hides."""
    program = Program()
    total = program.leaf("v")
    for line in range(count):
        program.line = line + 2
        power = program.op("PowBackward0", [(program.leaf(f"w{line}"), 1.0)], (1.0,), "w**2")
        total = program.op("DivBackward0", [(total, 1.0), (power, 0.5)], (1.0,), "total / power")
    return spoilt(program.report((total, (1.0,))), "PowBackward0", inf=1, dtype="float16")


def functions(count: int) -> Report:
    """So many operations, by turns four of one function and four of another."""
    program = Program()
    x = program.leaf("x")
    for number in range(count):
        program.function = "attend" if number // 4 % 2 else "mix"
        program.line = number + 2
        x = program.op(f"Op{number}Backward0", [(x, 1.0)], (1.0,), f"op{number}(x)")
    return program.report((x, (1.0,)))


def boxes(report: Report) -> object:
    """How many functions are a box when the report is folded."""
    items = simplify(report.graph, Folding(depth=1)).items
    return sum(item.title.endswith("()") for item in items)


def on_the_way(count: int) -> Report:
    """NaN that comes to the loss through so many lines."""
    ops = ("LogBackward0", 1.0, "log(w)"), *[("SinBackward0", 1.0, "sin(y)")] * count
    report = spoilt(in_turn(*ops, line=1), "LogBackward0", nan=1)
    return spoilt(report, "SinBackward0", nan=1)


def severity(report: Report) -> object:
    """How grave the findings are."""
    return [finding.severity for finding in diagnose(report)]


def one_step(share: float) -> Report:
    """Ten levels that leave 1e-6 of the gradient, of which one has such a share."""
    steps = [share, *([(1 - share) / 9] * 9)]
    return levels([1e-6 ** sum(steps[:level]) for level in range(11)])


def scaled(factor: float, after: float = 1.0, size: int = 4) -> Report:
    """So many numbers that are multiplied by a constant, and what lies between them and a leaf."""
    ops = ("SinBackward0", after, "sin(w)"), ("MulBackward0", factor, "sin(w) * c")
    return in_turn(*ops, shape=(size,) if size > 1 else (), received=size**-0.5)


def certain(received: float = 1.0, sent: float = 1e-9, above: str = "") -> Report:
    """A last softmax all of whose rows are sure, what it receives, and what of that it sends."""
    report = in_turn(
        ("SoftmaxBackward0", sent, "s(w)"),
        *([(above, 1.0, "log(s(w))")] if above else []),
        ("SumBackward0", 1.0, "s(w).sum()"),
        shape=(16,),
        received=received / 4,  # sixteen elements of this size
    )
    node = next(node.id for node in report.graph.nodes if node.short_op == "Softmax")
    return observed(report, activities=(Activity(node, saturated=1.0),))


FIVE = ("GS101",) * 5
WARNING, REMARK = ["warning"], ["information"]


def drifted(by: float, count: int = 1) -> Report:
    """So many parameters whose values differ by this part between two ranks."""
    names = [f"w{number}" for number in range(count)]
    return with_ranks(plain(), *(parameter(name, weights=(1.0, 1.0 - by)) for name in names))


def on_ranks(count: int) -> Report:
    """A parameter that so many ranks know nothing of."""
    each = [OneRank(rank, calls=1) for rank in range(count + 1)]
    return with_ranks(
        plain(), parameter(local={0: 1.0, **dict.fromkeys(range(1, count + 1))}), each=each
    )


def in_vain(count: int) -> Report:
    """So many ranks, of which one makes fewer backward calls than the others, which fail."""
    others = (OneRank(rank, calls=3, error="NCCL") for rank in range(1, count))
    return with_ranks(plain(), each=[OneRank(0, calls=2), *others])


def off_by(error: float) -> Report:
    """A custom Function whose backward is that far from the differences of its forward."""
    found = GradientComparison(0, "", "wrong", 1.0 + error, 1.0, error)
    return observed(plain(), functions=(CallCheck((0,), "Own", "wrong", (found,)),))


DEAD = partial(active, "ReluBackward0", dead=1.0)
EDGES = (
    Edge("nonfinite.MOST", partial(logarithms, inf=True), 5, 4, FIVE, FIVE[1:]),
    Edge("nonfinite.MOST", partial(logarithms, inf=True), 5, 6, FIVE, FIVE),
    Edge("nonfinite.MOST", logarithms, 5, 6, ("GS102",) * 5, ("GS102",) * 5),
    Edge("nonfinite.MOST", bad_leaves, 5, 6, ("GS105",) * 5, ("GS105",) * 5),
    Edge("nonfinite.MOST", bad_operands, 4, 6, ("GS105",) * 4, ("GS105",) * 5),
    Edge("nonfinite_forward.MOST_LINES", on_the_way, 6, 7, False, True, is_shortened),
    Edge("nonfinite_backward.DIRECT", guarded, 6, 7, True, False, is_guard_named),
    Edge(
        "stops.TINY",
        partial(tiny, "MeanBackward0"),
        5.9e-8,
        6.1e-8,
        UNDERFLOW.why,
        FLAT.why,
        reason,
    ),
    Edge(
        "stops.SMALL",
        partial(tiny, "MulBackward0"),
        5.9e-5,
        6.1e-5,
        UNDERFLOW.why,
        FLAT.why,
        reason,
    ),
    Edge("wrong_derivative.NEAR", off_by, 0.0051, 0.0049, WARNING, REMARK, severity),
    Edge("outlier_gain.ARRIVED", partial(scaled, 1e5), 1.01e-2, 0.99e-2, "GS206"),
    Edge("outlier_gain.FACTOR_UP", scaled, 1.01e4, 0.99e4, "GS206"),
    Edge("outlier_gain.FACTOR_DOWN", lambda factor: scaled(factor, 0.1), 0.99e-6, 1.01e-6, "GS206"),
    Edge("outlier_gain.STARVED", partial(scaled, 1e-7), 9.9, 10.1, "GS206"),
    Edge("outlier_gain.NOTHING", partial(scaled, 1e-8, size=1), 0.99e-4, 1.01e-4, "GS206"),
    Edge("saturated_activation.LOUD", certain, 1.01e-3, 0.99e-3, WARNING, REMARK, severity),
    Edge(
        *("saturated_activation.STUCK", partial(certain, 1.0), 0.99e-5, 1.01e-5),
        *(WARNING, REMARK, severity),
    ),
    Edge(
        *("saturated_activation: likelihood", partial(certain, 1.0, 1e-9), "", "LogBackward0"),
        *(WARNING, REMARK, severity),
    ),
    Edge("norms.SINGLE", one_step, 0.59, 0.61, "GS201"),
    Edge("norms.FEWEST_LEVELS", lambda count: levels(straight(1e-6, count)), 5, 4, "GS201"),
    Edge("norms.FEWEST_LEVELS", lambda count: levels(straight(1e6, count)), 5, 4, "GS202"),
    Edge("norms.STEADY", lambda wrong: levels(zigzag(1e-6, wrong)), 5, 6, "GS201"),
    Edge("norms.STEADY", lambda wrong: levels(zigzag(1e6, wrong)), 5, 6, "GS202"),
    Edge("norms.VANISHED", lambda to: levels(straight(to), head=9.0), 0.99e-5, 1.01e-5, "GS201"),
    Edge("norms.VANISHED", partial(levels, straight(1e-6)), 9.9, 10.1, WARNING, REMARK, severity),
    Edge("exploding_gradient.EXPLODED", lambda to: levels(straight(to)), 1.01e4, 0.99e4, "GS202"),
    Edge(
        *("exploding_gradient.LARGE", lambda scale: levels(straight(1e5), scale=scale)),
        *(0.0101, 0.0099, "GS202"),
    ),
    Edge(
        *("saturated_activation.SATURATED", partial(active, "SigmoidBackward0", (16,))),
        *(0.85, 0.849, "GS203"),
    ),
    Edge(
        "norms.FEWEST_ELEMENTS",
        partial(active, "TanhBackward0", saturated=1.0),
        (4, 4),
        (3, 5),
        "GS203",
    ),
    Edge(
        "dead_units.DEAD",
        lambda dead: active("ReluBackward0", (8, 4), dead=dead),
        0.9,
        0.899,
        "GS204",
    ),
    Edge("dead_units.FEWEST_SAMPLES", DEAD, (8, 9), (7, 9), "GS204"),
    Edge("dead_units.FEWEST_UNITS", DEAD, (9, 4), (9, 3), "GS204"),
    Edge("dead_units: channels", DEAD, (8, 4, 2, 3), (8, 2, 3), "GS204"),
    Edge("optimizers.FEWEST_DROPPED", dropping, 3, 2, "GS505"),
    Edge("wording.FEWEST", partial(out_of_order, "dropped"), 2, 1, "GS505"),
    Edge("optimizers.FEWEST_UNUSED", unstepped, 2, 1, "GS505"),
    Edge("wording.FEWEST", partial(out_of_order, "clip unused"), 2, 1, "GS506"),
    Edge("wording.FEWEST", partial(out_of_order, "stale graph"), 2, 1, "GS508"),
    Edge("wording.FEWEST", partial(out_of_order, "step alone"), 2, 1, "GS505"),
    Edge("left_out.FEWEST_CALLS", remade, 3, 2, 7, 8, line),
    Edge("left_out.MOST_LEFT", headed, 5, 4, WARNING, REMARK, severity),
    Edge("not_in_optimizer.FEWEST_UNCHANGED", copied, 3, 2, "GS307"),
    Edge("step_changes_nothing.FEWEST_LOOKS", lambda looks: still(looks, 95), 3, 2, "GS313"),
    Edge("step_changes_nothing.STILL", partial(still, 3), 90, 89, "GS313"),
    Edge(
        *("gradients_accumulate.MOST_NORMS", piled, 9, 8),
        "‖g‖ of the new gradients: 1, 2, 3, 4, 5, 6, 7, 8 and 1 more",
        "‖g‖ of the new gradients: 1, 2, 3, 4, 5, 6, 7, 8",
        last_line,
    ),
    Edge(
        *("words: listed", frozen, 5, 4),
        ("5 parameters: m.w0, m.w1, m.w2, m.w3 and 1 more",),
        ("4 parameters: m.w0, m.w1, m.w2, m.w3",),
        evidence,
    ),
    Edge("parameters: listed", idle, 4, 3, "w0, w1, w2 and 1 more", "w0, w1, w2", subject),
    Edge("parameters: listed", behind_a_cut, 4, 3, "w0, w1, w2 and 1 more", "w0, w1, w2", subject),
    Edge("readings: 300", failed, 301, 299, 307, 306, length),
    Edge(
        "backward_raises: 8",
        twice,
        "CumulatiXBackward0",
        "CumulatXBackward0",
        "f(w)",
        "",
        expression,
    ),
    Edge("parameters_drift.DRIFT", drifted, 1.1e-5, 0.9e-5, "GS702"),
    Edge("optimizers.MOST", partial(drifted, 0.1), 5, 4, 5, 5, shown),
    Edge("optimizers.MOST", on_ranks, 5, 4, True, False, is_cut_short),
    Edge("optimizers.MOST_RANKS", in_vain, 9, 8, 8, 8, shown),
    Edge("nonfinite_forward: hidden", hidden, 1, 2, "GS101", "GS101"),
    Edge("grouping.FUNCTION_ENTRIES", functions, 13, 12, 3, 0, boxes),
    Edge("grouping.FEWEST_IN_FUNCTION", functions, 15, 14, 4, 3, boxes),
)


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.number)
def test_on_both_sides_of_the_edge(edge: Edge) -> None:
    assert edge.ask(edge.make(edge.over)) == edge.found
    assert edge.ask(edge.make(edge.short)) == edge.instead


def test_every_number_of_the_rules_has_its_edge() -> None:
    numbers = set()
    for path in Path(gradscope.__file__).parent.glob("rules/**/*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Assign):
                names = [
                    name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)
                ]
                values = [
                    leaf.value for leaf in ast.walk(node.value) if isinstance(leaf, ast.Constant)
                ]
                if len(names) == len(values) and all(isinstance(v, int | float) for v in values):
                    numbers |= {f"{path.stem}.{name}" for name in names}
    assert numbers
    assert numbers <= {edge.number for edge in EDGES}


def full_looks(norms: Sequence[float], nodes: Sequence[int] = (), new: int = 0) -> list[int]:
    """Which calls are looked at in full when these are made at one line, one before which the
    program came to a new place."""
    policy, full = SamplingPolicy(thorough=False), []
    sizes = nodes or [1] * len(norms)
    for number, (norm, size) in enumerate(zip(norms, sizes, strict=True), 1):
        if policy.is_full(0):
            full.append(number)
        step = Step(number, norm=norm, nodes=size)
        policy.note(0, step, full=number in full, new=number == new)
    return full


ALWAYS = [1, 2, 3, 4, 5, 6, 10, 20, 40]
STEADILY = [1.0] * 45
LOOKS: tuple[tuple[str, list[int], list[int]], ...] = (
    ("in any run", full_looks(STEADILY), []),
    ("a new place", full_looks(STEADILY, new=12), [13, 14, 15, 16]),
    ("ten times as large", full_looks([*STEADILY[:29], 10.1, *STEADILY[30:]]), [31]),
    ("not quite", full_looks([*STEADILY[:29], 9.9, *STEADILY[30:]]), []),
    ("ten times as small", full_looks([*STEADILY[:29], 1 / 10.1, *STEADILY[30:]]), [31]),
    ("not quite so small", full_looks([*STEADILY[:29], 1 / 9.9, *STEADILY[30:]]), []),
    ("next to infinity", full_looks([1.01e15] * 45), sorted({*range(1, 46)} - {*ALWAYS})),
    ("not so near", full_looks([0.99e15] * 45), []),
    ("a new place in a long graph", full_looks(STEADILY, [1] * 11 + [2_000] * 34, new=12), [13]),
)
"""Runs, and the calls that are looked at in full besides those of any run."""


@pytest.mark.parametrize(("nodes", "looked"), [(1_000, [1, 2, 3]), (333, [1, 2, 3, 4, 5, 6])])
def test_long_graphs_are_looked_at_in_full_less_often(nodes: int, looked: list[int]) -> None:
    assert full_looks([1.0] * 9, [nodes] * 9, new=2) == looked


@pytest.mark.parametrize(("run", "looked", "besides"), LOOKS, ids=lambda value: str(value)[:20])
def test_which_calls_are_looked_at(run: str, looked: list[int], besides: list[int]) -> None:
    assert looked == sorted([*ALWAYS, *besides]), run
