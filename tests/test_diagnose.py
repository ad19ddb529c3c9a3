"""The rules on reports built by hand: what each must see, and what must leave it silent."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import msgspec
import pytest

from gradscope import rules
from gradscope.errors import ReportError
from gradscope.model.invariants import check
from gradscope.model.observations import (
    Activity,
    Alteration,
    Broadcast,
    Carried,
    Change,
    Cut,
    Failure,
    Finding,
    Freed,
    Intake,
    Location,
    LostTerm,
    MistakenCall,
    Observations,
    Saved,
    Setting,
    SkippedSteps,
    SpoilingStep,
    SpoiltParameter,
    Step,
    StepEffect,
    TrackedParameter,
)
from gradscope.model.plain import TensorInfo
from gradscope.model.ranks import OneRank
from gradscope.model.report import Origin, Report
from gradscope.model.studies import WRITES_UPSTREAM, CallCheck, GradientComparison
from gradscope.rules import RULES, at_least, is_graver, is_serious
from gradscope.rules.facts import Facts
from tests import reports
from tests.program import Program, in_turn
from tests.ranks.built import parameter, with_ranks

SCALAR = TensorInfo((), "float32")


def observed(report: Report, **seen: Any) -> Report:
    """The report with observations."""
    return msgspec.structs.replace(report, observations=Observations(**seen))


def seen_in(report: Report) -> Observations:
    """What it holds of these."""
    return report.observations if isinstance(report.observations, Observations) else Observations()


def placed(report: Report, *lines: int) -> Report:
    """The report with further origins, one for each line; their indices follow those there are."""
    more = tuple(Origin("demo.py", line, f"call{line}()") for line in lines)
    graph = msgspec.structs.replace(report.graph, origins=(*report.graph.origins, *more))
    return msgspec.structs.replace(report, graph=graph)


def plain() -> Report:
    """``loss = w*2`` of line 3, with places for observations at lines 7, 8 and 9: the last
    three origins."""
    return placed(in_turn(("MulBackward0", 2, "w*2"), line=3), 7, 8, 9)


def diagnose(report: Report, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """The findings; a rule that is not asked about a report would have found nothing in it."""
    facts = Facts(report)
    silent = {*RULES.values()} - {*RULES.about(facts)}
    assert not [draft for rule in silent for draft in rule.look(facts)]
    return rules.diagnose(report, ignore)


def told(report: Report) -> str:
    """Rule, severity and line of every finding."""
    lines = ((one, one.location.line if one.location else 0) for one in diagnose(report))
    return ", ".join(f"{one.rule} {one.severity} {line}" for one, line in lines)


def spoilt(report: Report, op: str, nan: int = 0, inf: int = 0, dtype: str = "float32") -> Report:
    """The report with a node of this op whose forward result is not finite."""
    nodes = []
    for node in report.graph.nodes:
        outputs = node.outputs
        if node.op == op:
            outputs = tuple(
                msgspec.structs.replace(out, nan=nan, inf=inf, dtype=dtype, values=None)
                for out in outputs
                if out is not None
            )
        nodes.append(msgspec.structs.replace(node, outputs=outputs))
    graph = msgspec.structs.replace(report.graph, nodes=tuple(nodes))
    return msgspec.structs.replace(report, graph=graph)


def ladder(op: str, factor: float, levels: int = 20) -> Report:
    """A loop of layers, each with its own weight, that multiplies the gradient by a factor."""
    program = Program()
    x = program.leaf("start", data=(1.0,), shape=(4,))
    for level in range(levels):
        weight = program.leaf(f"layers.{level}.weight", data=(1.0,), shape=(4,))
        program.line = 5
        x = program.op("MulBackward0", [(x, 1.0), (weight, 1.0)], (1.0,), "layer(x)")
        x = program.op(op, [(x, factor)], (1.0,), "act(layer(x))", "x")
    return program.report((x, (1.0,)))


def logs() -> Report:
    """``loss = log(w*2)``: lines 3 and 4."""
    return in_turn(("MulBackward0", 2, "w*2"), ("LogBackward0", 0.5, "log(w*2)"), line=3)


def test_healthy_reports_have_no_findings() -> None:
    for name in ("small", "traced", "scalars", "transformer", "several-outputs", "two-roots"):
        assert diagnose(reports.CASES[name]()) == ()


def test_forward_is_blamed_where_finite_numbers_go_in() -> None:
    report = spoilt(logs(), "LogBackward0", inf=1)
    (finding,) = diagnose(report)
    assert (finding.rule, finding.name) == ("GS101", "nonfinite-forward")
    assert finding.node is not None and finding.node.op == "LogBackward0"
    assert finding.location is not None and finding.location.line == 4
    assert is_serious(report)
    both = spoilt(report, "MulBackward0", nan=1)
    assert told(both) == "GS101 error 3"


def spoiling(rounded: bool = False) -> Report:
    """``plain`` with a step at line 8 that spoilt ``w``, of an optimizer made at line 7."""
    report = plain()
    *_, made, stepped, _ = range(len(report.graph.origins))
    setting = Setting("eps", 1e-8, is_zero=rounded)
    spoilt = SpoiltParameter("w", 0, "float16", nan=2, inf=1, count=4, gradient=0.5)
    step = SpoilingStep("Adam", stepped, made, 3, (spoilt,), (Setting("lr", 0.1), setting))
    return observed(report, spoiling_steps=(step,))


def test_a_step_that_spoils_is_told_where_its_optimizer_was_made() -> None:
    (finding,) = diagnose(spoiling(rounded=True))
    assert (finding.rule, finding.severity, finding.step) == ("GS106", "error", 3)
    assert finding.location is not None and finding.location.line == 7
    assert finding.evidence == (
        "`call8()` (demo.py:8) after backward call 3 spoils 1 parameter: w",
        "w: 2 NaN and 1 infinite of 4 elements, float16; its gradient is finite, 0.5",
        "eps=1e-08 is 0 in float16",
        "Adam with lr=0.1",
    )
    assert "eps=1e-4" in finding.remedy
    (other,) = diagnose(spoiling())
    assert "learning rate" in other.remedy and "Adam with lr=0.1, eps=1e-08" in other.evidence


def test_what_a_step_has_spoilt_is_no_finding_of_its_own() -> None:
    after = spoilt(spoiling(), "MulBackward0", nan=1)
    assert told(after) == "GS106 error 7"
    assert told(msgspec.structs.replace(after, observations=None)) == "GS101 error 3"


def given(loss: str, *ops: str, one_call: bool = True) -> Report:
    """A loss of line 9 that is given the result of these ops, of lines of their own; the last node
    of the loss and the one before it are of one call, or of two."""
    program = Program()
    y = program.leaf("w", data=(1.0, 2.0), shape=(2,))
    for line, op in enumerate(ops, 3):
        program.line = line
        y = program.op(op, [(y, 0.5)], (0, 1), f"f{line}(x)")
    program.line = 9
    if loss == "NllLossBackward0" and one_call:
        y = program.op("LogSoftmaxBackward0", [(y, 0.5)], (0, 1), "loss(y)")
    return program.report((program.op(loss, [(y, 0.5)], (1.5,), "loss(y)"), (1.0,)))


PROBABILITIES = {
    # Scores for the loss, and probabilities where it takes scores.
    " of ".join(ops): (given(*ops), found)
    for ops, found in {
        ("NllLossBackward0", "SoftmaxBackward0"): "GS512 warning 3",
        ("NllLossBackward0", "SigmoidBackward0", "ViewBackward0"): "GS512 warning 3",
        ("NllLossBackward0", "SoftmaxBackward0", "DivBackward0"): "",
        ("NllLossBackward0", "LogSoftmaxBackward0"): "",
        ("NllLossBackward0", "LogSigmoidBackward0"): "",
        ("BinaryCrossEntropyWithLogitsBackward0", "SigmoidBackward0"): "GS512 warning 3",
        ("BinaryCrossEntropyBackward0", "SigmoidBackward0"): "",
        ("BinaryCrossEntropyWithLogitsBackward0", "AddmmBackward0"): "",
    }.items()
} | {
    f"{op} of two calls": (given("NllLossBackward0", op, one_call=False), "")
    for op in ("SoftmaxBackward0", "LogSoftmaxBackward0")
}


def test_infinity_that_the_program_wrote_is_a_mask() -> None:
    filled = ("MaskedFillBackward0", 1, "w.masked_fill(m, -inf)")
    report = in_turn(filled, ("SoftmaxBackward0", 0.5, "softmax(filled)"), line=2)
    report = spoilt(report, "MaskedFillBackward0", inf=1)
    assert told(report) == ""
    assert told(spoilt(report, "SoftmaxBackward0", nan=2)) == "GS101 error 3"
    # One that reaches the loss is told where it was written.
    report = in_turn(filled, ("NegBackward0", -1, "-filled"), line=2)
    report = spoilt(spoilt(report, "MaskedFillBackward0", inf=1), "NegBackward0", inf=1)
    assert told(report) == "GS101 error 2"


def test_of_a_composite_call_the_operation_that_can_do_it_is_named() -> None:
    report = in_turn(
        ("CtcLossBackward0", 1.0, "ctc_loss(w)"), ("MeanBackward0", 0.5, "ctc_loss(w)")
    )
    (finding,) = diagnose(spoilt(report, "MeanBackward0", inf=1))
    assert finding.node is not None and finding.node.op == "CtcLossBackward0"


def test_a_nan_that_the_loss_leaves_out_is_told_where_it_was_made() -> None:
    program = Program()
    w = program.leaf("w", data=(1.0, 2.0), shape=(2,))
    v = program.leaf("v", data=(1.0, 2.0), shape=(2,))
    program.line = 2
    rows = program.op("SoftmaxBackward0", [(w, 0.5)], (0, 1), "softmax(w)")
    program.line = 3
    mixed = program.op("MulBackward0", [(rows, 1.0), (v, (math.nan, 1.0))], (0, 1), "rows * v")
    program.line = 4
    kept = program.op("IndexBackward0", [(mixed, (0.0, 1.0))], (0, 1), "mixed[valid]")
    report = program.report((kept, (1.0, 1.0)))
    report = spoilt(spoilt(report, "SoftmaxBackward0", nan=1), "MulBackward0", nan=1)
    assert told(report) == "GS101 error 2"


def test_the_way_of_a_nan_to_the_loss_is_told() -> None:
    program = Program()
    program.line = 2
    y = program.op("LogBackward0", [(program.leaf("w"), 1.0)], (1.0,), "log(w)")
    program.line = 3
    y = program.op("SinBackward0", [(y, 1.0)], (1.0,), "sin(y)")
    y = program.op("CosBackward0", [(y, 1.0)], (1.0,), "cos(sin(y))")
    program.file, program.line = "loss.py", 4
    y = program.op("SumBackward0", [(y, 1.0)], (1.0,), "y.sum()")
    report = program.report((y, (1.0,)))
    for op in ("LogBackward0", "SinBackward0", "CosBackward0", "SumBackward0"):
        report = spoilt(report, op, nan=1)
    (finding,) = diagnose(report)
    assert finding.evidence[-2:] == ("→ line 3 `cos(sin(y))`", "→ loss.py:4 `y.sum()`")


def test_a_mean_of_nothing_is_not_too_large() -> None:
    report = in_turn(("MeanBackward0", (), "w.mean()"), shape=(0,))
    (finding,) = diagnose(spoilt(report, "MeanBackward0", nan=1))
    assert "no element" in finding.why
    undefined = spoilt(plain(), "MulBackward0", nan=1, dtype="float16")
    (finding,) = diagnose(undefined)
    assert (finding.rule, "larger than" in finding.why) == ("GS101", False)


def test_nan_inside_a_call_that_took_nan_is_not_born_there() -> None:
    report = in_turn(("MmBackward0", 1.0, "gru(x)"), ("StackBackward0", 1.0, "gru(x)"))
    report = spoilt(report, "StackBackward0", nan=1)
    assert told(observed(report, intakes=(Intake(0, "x", nan=1, first=1),))) == "GS105 error 1"


def test_a_mask_of_infinities_is_no_bad_data() -> None:
    program = Program()
    scores = program.op("BaddbmmBackward0", [(program.leaf("w"), 1.0)], (1.0,), "attend(x, mask)")
    rows = program.op("SoftmaxBackward0", [(scores, math.nan)], (1.0,), "attend(x, mask)")
    mixed = program.op("BmmBackward0", [(rows, 1.0)], (1.0,), "attend(x, mask)")
    program.line = 3
    kept = program.op("IndexBackward0", [(mixed, 1.0)], (1.0,), "mixed[valid]")
    report = spoilt(program.report((kept, (1.0,))), "BmmBackward0", nan=1)
    (finding,) = diagnose(observed(report, intakes=(Intake(1, "", inf=1, first=3),)))
    assert finding.rule == "GS101"
    assert finding.node is not None and finding.node.op == "SoftmaxBackward0"


def test_an_overflow_that_a_division_hides() -> None:
    ops = ("PowBackward0", 800.0, "w**2"), ("RsqrtBackward0", 0.5, "rsqrt(power)")
    report = in_turn(*ops, line=2)
    assert told(spoilt(report, "PowBackward0", inf=4, dtype="float16")) == "GS101 warning 2"
    assert told(spoilt(report, "PowBackward0", inf=4)) == ""


def test_which_of_two_steps_is_shown() -> None:
    healthy, infinite = plain(), spoilt(plain(), "MulBackward0", inf=1)
    vanishing, exploding = ladder("SigmoidBackward0", 0.2), ladder("MulBackward0", 2.0)
    assert is_graver(infinite, healthy)
    assert is_graver(infinite, vanishing)
    assert is_graver(vanishing, healthy)
    assert not is_graver(infinite, exploding)  # what explodes overflows in the next step
    assert not is_graver(vanishing, exploding)
    assert not is_graver(healthy, healthy)


def test_backward_is_blamed_with_what_it_had_saved() -> None:
    report = reports.broken()
    saved = Saved(1, "self", 0.0, 2.0, zeros=1, nan=0, inf=0, count=3)
    (finding,) = diagnose(observed(report, saved=(saved,)))
    assert (finding.rule, finding.location and finding.location.line) == ("GS102", 6)
    assert any("1 of 3 are 0" in line for line in finding.evidence)
    assert any("w, scale" in line for line in finding.evidence)


def test_a_branch_not_taken_is_recognised() -> None:
    branches = ("WhereBackward0", (0.0, 1.0), "where(x > 0, sqrt(x), 0)")
    report = in_turn(("SqrtBackward0", (math.nan, 0.5), "sqrt(x)"), branches, shape=(2,))
    (finding,) = diagnose(report)
    assert finding.rule == "GS102"
    assert "where(x > 0, sqrt(x), 0)" in finding.why


def test_zero_where_a_step_function_is_and_not_where_it_is_meant() -> None:
    def zeroed(op: str, loss: float = 1.0) -> Report:
        report = in_turn((op, 0.0, "f(w)"), shape=(2,))
        passes = (msgspec.structs.replace(report.passes[0], number=1),)
        report = msgspec.structs.replace(report, passes=passes)
        return observed(report, steps=(Step(1, loss=loss),))

    assert told(zeroed("RoundBackward0")) == "GS205 warning 1"
    assert told(zeroed("ClampBackward1")) == "GS205 warning 1"
    assert told(zeroed("ClampBackward1", loss=0.0)) == ""
    assert told(zeroed("PowBackward0")) == "GS205 warning 1"
    assert told(zeroed("PowBackward0", loss=0.0)) == ""


def test_zeros_are_no_matter_while_something_learns_or_a_margin_is_kept() -> None:
    def beside(op: str, slope: float) -> Report:
        program = Program()
        w = program.leaf("w", data=(1.0, 2.0), shape=(2,))
        v = program.leaf("v", data=(1.0, 2.0), shape=(2,))
        y = program.op(op, [(w, 0.0)], (0, 0), "f(w)")
        z = program.op("ExpBackward0", [(v, slope)], (1, 2), "exp(v)")
        total = program.op("AddBackward0", [(y, 1.0), (z, 1.0)], (1, 2), "f(w) + exp(v)")
        return program.report((total, (1.0, 1.0)))

    assert told(beside("EmbeddingBackward0", 1.0)) == ""
    assert told(beside("EmbeddingBackward0", 0.0)) == "GS205 warning 1"
    assert told(beside("ClampMinBackward0", 1.0)) == ""


def learner(name: str, **more: Any) -> TrackedParameter:
    """A parameter of a module that an optimizer holds."""
    given = {"requires_grad": True, "in_module": True, "in_optimizer": True, **more}
    return TrackedParameter(name, SCALAR, **given)


def held(name: str, by: tuple[int, ...]) -> TrackedParameter:
    """A parameter that learns, and the optimizers that hold it."""
    return learner(name, reached=True, held_by=by)


REACHED = learner("w", leaf=0, reached=True)
STEPS = (Step(1, nodes=2), Step(2, nodes=2))
A, B, C = 2, 3, 4  # the origins of lines 7, 8 and 9
NO_HISTORY = Failure(
    "RuntimeError",
    "element 0 of tensors does not require grad and does not have a grad_fn",
    A,
    in_backward=True,
)
TERM = Cut(B, "detach", "function", ("w",), summand=True)
DETACHED_NUMBER = msgspec.structs.replace(TERM, scalar=True)
GRADIENT_TERM = Cut(B, "grad", "function", ("w",), summand=True, scalar=True)
SECOND = Cut(B, "detach", "function", ("b",), feeds_graph=True)


def see(found: str, **seen: Any) -> tuple[Report, str]:
    """``plain`` with these observations, and the rule, severity and line of each finding."""
    return observed(plain(), **{"steps": STEPS, **seen}), found


OBSERVED: dict[str, tuple[Report, str]] = {
    "not a leaf": see("GS306 warning 8", learners=(learner("b", history="mul", made=B),)),
    "unused, its numbers are read with all others": see(
        "GS301 warning 7",
        learners=(REACHED, learner("b", made=A)),
        cuts=(Cut(B, "detach", "function", ("w", "b")),),
    ),
    "unused, its numbers come into the loss": see(
        "GS303 warning 8",
        learners=(REACHED, learner("b", made=A)),
        cuts=(Cut(B, "detach", "function", ("w", "b"), feeds_graph=True),),
    ),
    "its output is left out, and its numbers are saved": see(
        "GS301 warning 8",
        learners=(REACHED, learner("b", used=B, recorded=True)),
        cuts=(Cut(C, "detach", "function", ("b",), itself=True),),
    ),
    "its output is left out, by a cut": see(
        "GS303 warning 9",
        learners=(REACHED, learner("b", used=B, recorded=True)),
        cuts=(Cut(C, "detach", "function", ("w", "b")),),
    ),
    "of no elements": see(
        "",
        learners=(
            REACHED,
            msgspec.structs.replace(learner("b"), tensor=TensorInfo((0,), "float32")),
        ),
    ),
    "unused, of no optimizer": see(
        "", learners=(REACHED, learner("b", made=A, in_optimizer=False))
    ),
    "unused expert": see(
        "GS301 information 7", learners=(learner("e.0.w", reached=True), learner("e.1.w", made=A))
    ),
    "its turn comes later": see("", learners=(REACHED, learner("b", waiting=True, used=A))),
    "failed before it could be used": see(
        "",
        learners=(learner("b", made=A), learner("c", used=B)),
        steps=(),
        failure=Failure("ValueError", "no such file", A),
    ),
    "an evaluation is all there was": see(
        "GS303 warning 9",
        learners=(REACHED, learner("b", used=A)),
        cuts=(Cut(A, "linear", "no_grad", ("b",), switched=C),),
    ),
    "a target": see("", learners=(REACHED,), cuts=(Cut(B, "detach", "function", ("w",)),)),
    "the cut that feeds the graph": see(
        "GS303 warning 9",
        learners=(REACHED, learner("b", used=A)),
        cuts=(
            Cut(B, "item", "function", ("b",)),
            Cut(C, "detach", "function", ("b",), feeds_graph=True),
        ),
    ),
    "a term of the loss, detached": see("GS303 information 8", learners=(REACHED,), cuts=(TERM,)),
    "a model that is gone": see(
        "GS301 warning 9", learners=(learner("b", made=A, orphan=True, held_by=(C,)),)
    ),
    "a term of the loss, made of what was detached": see(
        "GS303 warning 8",
        learners=(REACHED,),
        cuts=(TERM,),
        lost_terms=(LostTerm(TERM, leaves=("w",)),),
    ),
    "a term of the loss, detached when it was a number": see(
        "GS303 information 8",
        learners=(REACHED,),
        cuts=(DETACHED_NUMBER,),
        lost_terms=(LostTerm(DETACHED_NUMBER, leaves=("w",)),),
    ),
    "a term of the loss, of gradients without a graph": see(
        "GS303 warning 8",
        learners=(REACHED,),
        cuts=(GRADIENT_TERM,),
        lost_terms=(LostTerm(GRADIENT_TERM, leaves=("w",)),),
    ),
    "the cut that a step was lost to, not the one before it": see(
        "GS303 warning 8",
        learners=(REACHED, learner("b", used=A)),
        cuts=(Cut(A, "detach", "function", ("b",), feeds_graph=True), SECOND),
        lost_terms=(LostTerm(SECOND, C, ("b",)),),
    ),
    "gradients that feed no loss": see(
        "GS301 warning 7",
        learners=(REACHED, learner("b", used=A)),
        cuts=(Cut(B, "grad", "function", ("b",)),),
    ),
    "frozen": see(
        "GS305 information 7", learners=(REACHED, learner("b", requires_grad=False, made=A))
    ),
    "in no optimizer, and one place makes two that hold the same": see(
        "GS307 information 7",
        learners=(held("G.w", (B, B)), learner("D.w", in_optimizer=False, reached=True, made=A)),
        optimizers=(B, B),
    ),
    "in no optimizer, and made later": see(
        "GS307 warning 8",
        learners=(
            held("a.w", (B,)),
            learner("b.w", in_optimizer=False, reached=True, made=A, late=True),
            learner("c.w", in_optimizer=False, reached=True, made=C, late=True),
        ),
        optimizers=(B,),
    ),
    "made later, where another optimizer holds what nothing uses": see(
        "GS301 warning 9, GS307 warning 8",
        learners=(
            held("a.w", (A,)),
            learner("c.w", held_by=(B,), made=C),
            learner("b.w", in_optimizer=False, reached=True, made=A, late=True),
        ),
        optimizers=(A, B),
    ),
    "biases only": see(
        "GS307 information 7",
        learners=(
            *(held(f"{name}.b", (B,)) for name in "abc"),
            held("head.w", (B,)),
            held("head.b", (B,)),
            *(learner(f"{n}.w", in_optimizer=False, reached=True, made=A) for n in "ab"),
        ),
        optimizers=(B,),
    ),
    "only an input is learned": see(
        "",
        learners=(
            learner("image", in_module=False, reached=True),
            learner("net.w", in_optimizer=False, reached=True),
        ),
    ),
    "made anew of what forward computed": see(
        "",
        learners=(
            REACHED,
            learner("b", in_optimizer=False, reached=True, once=True, made=B, late=True),
        ),
        cuts=(Cut(B, "Parameter", "function"),),
    ),
    "silent change": see("GS401 warning 8", changes=(Change(0, "self", B, "mul_", silent=True),)),
    "loud change": see("GS401 error 8", changes=(Change(0, "self", B, "mul_"),)),
    "no history": see("GS403 error 7", failure=NO_HISTORY),
    "an error of the program's own": see("", failure=Failure("ValueError", "no such file", A)),
    "piling up inside of a step": see(
        "GS501 warning 8", steps=(Step(1), Step(2, reused=3, origin=A, in_closure=True)), zeroed=B
    ),
    "piling up inside of a step that nothing zeroes": see(
        "GS501 warning 7", steps=(Step(1), Step(2, reused=3, origin=A, in_closure=True))
    ),
    "two optimizers": see("", steps=(Step(1), Step(2), Step(3))),
    "inner steps": see(
        "", steps=(*(Step(n, nodes=10 * n, accumulates=False) for n in range(1, 6)), Step(6))
    ),
    "dropped, and read or of an input": see(
        "",
        learners=(REACHED, learner("x", leaf=0, in_module=False, in_optimizer=False)),
        steps=tuple(Step(n, dropped=2) for n in range(1, 5)),
    ),
    "dropped before the first step": see(
        "",
        learners=(REACHED,),
        steps=(*(Step(n, dropped=1) for n in range(1, 5)), Step(5, stepped=True)),
    ),
    "in no optimizer, and switched on later": see(
        "GS307 warning 8",
        learners=(
            REACHED,
            learner("body.w", in_optimizer=False, reached=True, made=A, thawed=True, thawed_at=C),
        ),
        optimizers=(B,),
    ),
    "ended without a step, outside of every optimizer": see(
        "",
        learners=(learner("x", leaf=0, in_module=False, in_optimizer=False),),
        steps=(Step(1), Step(2, origin=A)),
        never_stepped=True,
    ),
    "clipped while scaled, then with an empty generator": see(
        "GS506 warning 7, GS506 warning 7",
        mistaken_calls=(MistakenCall("clip scaled", A, other=B), MistakenCall("clip empty", A, 2)),
    ),
    "clipped at the wrong time in two ways": see(
        "GS506 warning 7",
        mistaken_calls=(
            MistakenCall("clip unused", A, 2, other=B),
            MistakenCall("clip elsewhere", A, 2),
        ),
    ),
    "clipped at the right time, too": see(
        "", mistaken_calls=(MistakenCall("clip unused", A, 9, other=B, fine=1),)
    ),
    "changing": see("", steps=tuple(Step(n, nodes=n * n) for n in range(1, 6))),
    "broadcast": see(
        "GS503 warning 3", broadcasts=(Broadcast(1, "mul", ((4, 1), (4,)), (4, 4), reduced=True),)
    ),
    "a broadcast that no loss sums up": see(
        "", broadcasts=(Broadcast(1, "mul", ((4, 1), (4,)), (4, 4)),)
    ),
    "two broadcasts of the same shapes": see(
        "GS503 warning 7, GS503 warning 9",
        broadcasts=(
            Broadcast(A, "mul", ((4, 1), (4,)), (4, 4), reduced=True),
            Broadcast(B, "mul", ((4,), (4, 1)), (4, 4), reduced=True),
            Broadcast(C, "sub", ((5, 1), (5,)), (5, 5), reduced=True),
        ),
    ),
    "a missing channel": see(
        "GS503 warning 3",
        broadcasts=(Broadcast(1, "mse_loss", ((2, 1, 5, 5), (2, 5, 5)), (2, 2, 5, 5)),),
    ),
    "two named singletons": see(
        "", broadcasts=(Broadcast(1, "smooth_l1_loss", ((8, 1, 5), (8, 5, 1)), (8, 5, 5)),)
    ),
    "a map of one pixel": see(
        "GS503 warning 3",
        broadcasts=(Broadcast(1, "sub", ((8, 3, 1, 1), (8, 3)), (8, 3, 8, 3), reduced=True),),
    ),
    "a factor a sample": see(
        "GS503 warning 3",
        broadcasts=(Broadcast(1, "mul", ((8, 1, 1), (8, 5)), (8, 8, 5), reduced=True),),
    ),
    "a factor a head": see(
        "", broadcasts=(Broadcast(1, "mul", ((4, 1, 1), (8, 5)), (4, 8, 5), reduced=True),)
    ),
    "as long in two ways": see(
        "", broadcasts=(Broadcast(1, "mul", ((8, 1, 1), (8, 8)), (8, 8, 8), reduced=True),)
    ),
    "bias": see("", broadcasts=(Broadcast(1, "add", ((4, 3), (3,)), (4, 3)),)),
    "hook": see("GS504 information 7", alterations=(Alteration(A, "register_hook", 0, 1.0, 2.0),)),
}


@pytest.mark.parametrize(
    ("functions", "why"),
    [
        ("item float tolist", "plain number"),
        ("numpy array", "NumPy"),
        ("detach data", "shares the numbers"),
        ("argmax nonzero", "An index"),
        ("to type type_as long int bool", "rounds away"),
        ("gt eq isnan any", "comparison"),
        ("histc Own", "recorded no history"),
    ],
)
def test_a_cut_is_explained_by_what_it_does(functions: str, why: str) -> None:
    for function in functions.split():
        cuts = (Cut(B, function, "function", ("b",)),)
        (found,) = diagnose(observed(plain(), learners=(REACHED, learner("b", used=A)), cuts=cuts))
        assert why in found.why, function


def test_a_list_of_modules_is_one_finding() -> None:
    parts = [(f"blocks.{n}.{part}", B + n % 2) for n in range(3) for part in ("norm.w", "fc.w")]
    used = tuple(learner(name, used=place) for name, place in parts)
    heads = tuple(learner(f"heads['{key}'].w", in_optimizer=False, loose=True) for key in "abc")
    heads = tuple(msgspec.structs.replace(head, reached=True) for head in heads)
    kept = (REACHED, learner("blocks.3.norm.w", reached=True), learner("heads.w", reached=True))
    found = diagnose(observed(plain(), learners=(*kept, *used, *heads), steps=STEPS))
    assert [(finding.rule, finding.severity, finding.subject) for finding in found] == [
        ("GS301", "warning", "blocks.0, blocks.1, blocks.2"),
        ("GS307", "warning", "heads['a'], heads['b'], heads['c']"),
    ]


@pytest.mark.parametrize(
    ("cut", "remedy"),
    [
        (Cut(B, "normal", "no_grad", ("b",), within="Normal.sample", twin="rsample"), "rsample()"),
        (Cut(B, "multinomial", "no_grad", ("b",), within="Categorical.sample"), "log_prob"),
        (Cut(B, "uniform_", "no_grad", ("b",), within="_fill"), "operations that record history"),
        (Cut(B, "linear", "no_grad", ("b",)), "`with` blocks"),
    ],
)
def test_who_switched_gradients_off_is_told_what_to_do(cut: Cut, remedy: str) -> None:
    (found,) = diagnose(observed(plain(), learners=(REACHED, learner("b", used=A)), cuts=(cut,)))
    assert (found.rule, remedy in found.remedy) == ("GS303", True), found
    assert ("with` blocks" in found.remedy) == (not cut.within)


def test_what_carries_a_freed_graph_over_is_named() -> None:
    failure = Failure("RuntimeError", "Trying to backward through the graph a second time", None)
    report = plain()
    last = len(report.graph.origins)
    freed = Freed(0, last - 3, "self.memory", stored=last - 2, taken=last - 1)
    (finding,) = diagnose(observed(report, failure=failure, freed=(freed,)))
    assert finding.subject == "self.memory"
    words = "carried over by self.memory, stored at demo.py:8 and used again at demo.py:9"
    assert words in finding.evidence
    steps = tuple(Step(number) for number in range(1, 5))
    carried = Carried(last - 2, "total", 4)
    (finding,) = diagnose(observed(report, carried=(carried,), steps=steps))
    told = finding.rule, str(finding.location), finding.subject
    assert told == ("GS502", "demo.py:8", "total")
    assert finding.evidence == ("its history leads through its own results of 4 steps",)


def test_clipping_before_unscaling_gets_one_remedy() -> None:
    mistaken = MistakenCall("clip scaled", A, other=B)
    (found,) = diagnose(observed(plain(), mistaken_calls=(mistaken,)))
    assert found.remedy.startswith("Call `scaler.unscale_(optimizer)`")


def test_a_backward_that_writes_into_its_gradient_is_told_so() -> None:
    report = plain()
    check = CallCheck((0,), "Own", "wrong", reason=WRITES_UPSTREAM)
    (found,) = diagnose(observed(report, functions=(check,)))
    assert found.message == "backward of Mul writes into the gradient that it is given."
    assert "clone()" in found.remedy


NO_SCALAR = "grad can be implicitly created only for scalar outputs"


def in_half(report: Report) -> Report:
    """The report with float16 for every gradient."""
    (backward,) = report.passes
    halves = tuple(msgspec.structs.replace(info, dtype="float16") for info in backward.gradients)
    passes = (msgspec.structs.replace(backward, gradients=halves),)
    return msgspec.structs.replace(report, passes=passes)


def product(factor: float, received: float = 1.0) -> Report:
    """``loss = a*b``, line 1, with the derivative of it by both."""
    program = Program()
    factors = [(program.leaf(name, data=(0.0,)), factor) for name in "ab"]
    loss = program.op("MulBackward0", factors, (0.0,), "a*b")
    return program.report((loss, (received,)))


def silent_units() -> Report:
    """A ReLU that passes nothing but zeros on, all units dead."""
    ops = ("ReluBackward0", 0.0, "relu(w)"), ("ExpBackward0", 1.0, "exp")
    return observed(in_turn(*ops, line=1, shape=(16, 8)), activities=(Activity(1, dead=1.0),))


def hooked(after: float, beside: float = 0.0) -> Report:
    """A hook that makes a gradient of 1 this number, and what its leaf gets besides."""
    program = Program()
    w = program.leaf("w")
    h = program.op("SinBackward0", [(w, 1.0)], (1.0,), "sin(w)")
    loss = program.op("AddBackward0", [(h, after), (w, beside)], (1.0,), "sin(w) + w")
    report = program.report((loss, (1.0,)))
    node = next(node.id for node in report.graph.nodes if node.short_op == "Sin")
    return observed(report, alterations=(Alteration(None, "register_hook", node, 1.0, after),))


def test_a_hook_that_leaves_a_leaf_nothing_is_warned_of() -> None:
    severities = [
        {finding.rule: finding.severity for finding in diagnose(report)}["GS504"]
        for report in (hooked(0.0), hooked(0.1), hooked(0.0, beside=1.0))
    ]
    assert severities == ["warning", "information", "information"]


def cut_off() -> Report:
    """A cut, and a failure that another rule explains."""
    cut = Cut(B, "detach", "function", ("b",))
    return observed(plain(), learners=(learner("b", used=A),), cuts=(cut,), failure=NO_HISTORY)


def lost_term(origin: int) -> Report:
    """A cut of a term that was made at ``origin``, of what learns by another way."""
    (cut,) = seen_in(cut_off()).cuts
    cut = msgspec.structs.replace(cut, feeds_graph=True)
    learners = (REACHED, learner("b", used=A, reached=True))
    terms = (LostTerm(cut, origin, ("b",)),)
    return observed(plain(), learners=learners, cuts=(cut,), lost_terms=terms)


def not_finite(rule: str, **active: float) -> Report:
    """A clamp that sends nothing but zeros, because what went in is NaN; or such an activation."""
    program = Program()
    op = "TanhBackward0" if "saturated" in active else "ClampMinBackward0"
    op = "ReluBackward0" if "dead" in active else op
    w = program.leaf("w", data=(1.0,), shape=(16, 8))
    ratio = program.op("DivBackward0", [(w, 0.0)], (1.0,), "w / 0")
    hinge = program.op(op, [(ratio, 0.0)], (1.0,), "limited(w / 0)")
    loss = program.op("MseLossBackward0", [(hinge, 1.0)], (1.0,), "mse_loss(limited)")
    report = program.report((loss, (1.0,)))
    for spoils in ("DivBackward0", op, "MseLossBackward0"):
        report = spoilt(report, spoils, nan=1)
    (node,) = (node.id for node in report.graph.nodes if node.op == "DivBackward0")
    return observed(
        report,
        intakes=(Intake(node, "x", nan=1),) if rule == "GS105" else (),
        activities=(Activity(1, **active),) if active else (),
    )


def raising(report: Report, text: str = "no") -> Report:
    """The report, and a backward call that failed with these words."""
    seen = seen_in(report)
    failure = seen.failure or Failure("RuntimeError", text, A, in_backward=True)
    seen = msgspec.structs.replace(seen, failure=failure)
    return msgspec.structs.replace(report, observations=seen)


def not_in_graph(**more: Any) -> Report:
    """A gradient was asked for by a tensor that is not in the graph."""
    return raising(observed(plain(), learners=(learner("b", wanted=True, made=B, **more),)))


NONFINITE: dict[str, Report] = {
    "GS101": spoilt(plain(), "MulBackward0", nan=1),
    "GS102": placed(reports.broken(), 7),
    "GS105": observed(spoilt(plain(), "MulBackward0", nan=1), intakes=(Intake(0, "x", nan=1),)),
}
"""For every rule that finds the first NaN, a report on which it does."""

RAISED: dict[str, Report] = {
    **{code: raising(report) for code, report in NONFINITE.items()},
    "GS301": not_in_graph(),
    "GS303": cut_off(),
    "GS401": raising(observed(plain(), changes=(Change(0, "self", B, "mul_"),))),
    "GS402": raising(plain(), "Trying to backward through the graph a second time"),
    "GS403": raising(plain(), NO_SCALAR),
}
"""For every rule that can say why backward raised, a report on which it does."""


def after_a_step(rule: str) -> Report:
    """A step of the optimizer has spoilt ``w``, and this rule finds what came of it."""
    report = NONFINITE[rule]
    seen = seen_in(report)
    leaves = range(len(report.graph.leaves))
    known = tuple(SpoiltParameter(f"w{n}", n, "float32", 1, 0, 1) for n in leaves)
    steps = (SpoilingStep("Adam", None, None, 1, known),)
    return msgspec.structs.replace(
        report, observations=msgspec.structs.replace(seen, spoiling_steps=steps)
    )


def failed_rank(rank: int, calls: int, error: str = "Connection closed by peer") -> OneRank:
    """A rank whose program failed in one of its backward calls."""
    return OneRank(rank, calls=calls, error=error)


LOST = Failure("RuntimeError", "gloo/pair.cc: Connection closed by peer", A, True, ended=True)
SUBSUMED: dict[tuple[str, str], Report] = {
    **{("GS106", code): after_a_step(code) for code in ("GS101", "GS102", "GS105")},
    ("GS205", "GS204"): silent_units(),
    ("GS102", "GS601"): observed(
        reports.broken(),
        functions=(
            CallCheck((1,), "Own", "wrong", (GradientComparison(0, "", "wrong", "NaN", 1.0),)),
        ),
    ),
    **{(rule, "GS205"): not_finite(rule) for rule in ("GS101", "GS105")},
    **{(rule, "GS204"): not_finite(rule, dead=1.0) for rule in ("GS101", "GS105")},
    ("GS105", "GS203"): not_finite("GS105", saturated=1.0),
    **{
        (code, "GS313"): observed(
            ladder("MulBackward0", factor), effects=(StepEffect(0, "float32", 3, 100, 95, 0),)
        )
        for code, factor in (("GS201", 1e-2), ("GS202", 1e2))
    },
    ("GS303", "GS403"): cut_off(),
    ("GS601", "GS403"): observed(
        plain(),
        functions=(
            CallCheck(
                (1,), "Own", "wrong", (GradientComparison(0, "", "wrong", None, 1.0),), order=2
            ),
        ),
        failure=NO_HISTORY,
    ),
    **{(code, "GS410"): report for code, report in RAISED.items()},
    ("GS701", "GS410"): with_ranks(
        observed(plain(), failure=LOST), parameter(local={0: 1.0, 1: None})
    ),
    ("GS703", "GS410"): with_ranks(
        observed(plain(), failure=LOST), each=(failed_rank(0, 4), OneRank(1, calls=3))
    ),
}
"""For every pair of rules of which one takes precedence, a report on which both find something."""


def test_every_precedence_has_its_report() -> None:
    declared = {
        (rule.code, code)
        for rule in RULES.values()
        for code, agreement in rule.before.items()
        if agreement != "step before"
    }
    assert set(SUBSUMED) == declared


@pytest.mark.parametrize(("cause", "consequence"), SUBSUMED)
def test_of_a_cause_and_its_consequence_the_cause_is_told(cause: str, consequence: str) -> None:
    report = SUBSUMED[cause, consequence]
    assert list(RULES[consequence].look(Facts(report)))
    codes = {finding.rule for finding in diagnose(report)}
    assert cause in codes
    assert consequence not in codes
    # Nor is it told where its cause is not wanted.
    assert consequence not in {finding.rule for finding in diagnose(report, ignore=(cause,))}


def test_what_comes_of_an_explosion_is_all_that_is_not_graver() -> None:
    exploding = ladder("MulBackward0", 2.0)
    assert {
        code for rule in RULES.values() for code, on in rule.before.items() if on == "step before"
    } == set(NONFINITE)
    for code, report in NONFINITE.items():
        assert {finding.rule for finding in diagnose(report)} == {code}
        assert not is_graver(report, exploding)
        assert is_graver(report, ladder("SigmoidBackward0", 0.2))


def test_what_has_nothing_in_common_is_told_beside_it() -> None:
    program = Program()
    w = program.leaf("w", data=(1.0, 2.0), shape=(2,))
    v = program.leaf("v", data=(1.0,), shape=(16, 8))
    y = program.op("RoundBackward0", [(w, 0.0)], (1, 2), "round(w)")
    program.line = 2
    z = program.op("ReluBackward0", [(v, 1.0)], (0.0,), "relu(v)")
    report = program.report((y, (1.0, 1.0)), (z, (1.0,)))
    dead = observed(report, activities=(Activity(0, dead=1.0),))
    assert told(dead) == "GS204 warning 2, GS205 warning 1"
    # An overflow that nobody notices is milder than what its backward makes.
    program = Program()
    power = program.op("PowBackward0", [(program.leaf("w"), math.nan)], (1.0,), "w**2")
    scaled = program.op("RsqrtBackward0", [(power, 0.5)], (0.0,), "rsqrt(power)")
    hidden = spoilt(program.report((scaled, (1.0,))), "PowBackward0", inf=1, dtype="float16")
    assert told(hidden) == "GS102 error 1, GS101 warning 1"
    # What is flat whatever goes in is so beside NaN, too.
    program = Program()
    w, v = program.leaf("w"), program.leaf("v")
    flat = program.op("RoundBackward0", [(w, 0.0)], (1.0,), "round(w)")
    program.line = 2
    log = program.op("LogBackward0", [(v, 1.0)], (1.0,), "log(v)")
    program.line = 3
    loss = program.op("AddBackward0", [(flat, 1.0), (log, 1.0)], (1.0,), "round(w) + log(v)")
    both = spoilt(program.report((loss, (1.0,))), "LogBackward0", nan=1)
    both = spoilt(both, "AddBackward0", nan=1)
    assert told(both) == "GS101 error 2, GS205 warning 1"


def test_parts_of_a_librarys_model_may_be_left_unused() -> None:
    report = plain()
    file = Origin("/env/lib/python3.11/site-packages/zoo/model.py", 1, "nn.Linear(4, 4)")
    graph = msgspec.structs.replace(report.graph, origins=(*report.graph.origins, file))
    report = msgspec.structs.replace(report, graph=graph)
    made = len(graph.origins) - 1
    body = learner("body.w", made=made, reached=True)
    parts = (learner("pooler.w", made=made, used=A), learner("mask.w", made=made))
    told_of_parts = told(observed(report, learners=(body, *parts), steps=STEPS))
    assert told_of_parts == "GS301 information 1, GS301 information 7"
    # Where nothing of it learns, it was forgotten.
    told_of_all = told(observed(report, learners=(REACHED, *parts), steps=STEPS))
    assert told_of_all == "GS301 warning 1, GS301 warning 7"
    # Who freezes one looks for the optimizer, and not for a line of the library.
    frozen = learner("pooler.w", made=made, requires_grad=False, held_by=(A,))
    assert told(observed(report, learners=(REACHED, frozen), steps=STEPS)) == "GS305 information 7"


@pytest.mark.parametrize(
    ("file", "findings"), [("/env/lib/python3.11/site-packages/zoo/model.py", 1), ("demo.py", 3)]
)
def test_one_line_of_a_library_is_one_cause(file: str, findings: int) -> None:
    report = plain()
    graph = report.graph
    graph = msgspec.structs.replace(graph, origins=(*graph.origins, Origin(file, 1, "Parameter()")))
    report = msgspec.structs.replace(report, graph=graph)
    parts = tuple(learner(f"{name}.w", made=len(graph.origins) - 1) for name in "abc")
    found = diagnose(observed(report, learners=(REACHED, *parts), steps=STEPS))
    assert [one.rule for one in found] == ["GS301"] * findings
    assert (found[0].evidence[-1] == "2 more there: b, c") == (findings == 1)


def test_parameters_of_one_module_are_one_finding() -> None:
    learners = (REACHED, learner("norm.weight", made=A), learner("norm.bias", made=A))
    (finding,) = diagnose(observed(plain(), learners=learners))
    assert finding.subject == "norm"
    assert any("norm.weight, norm.bias" in line for line in finding.evidence)


def test_worst_first_and_ignored_ones_left_out() -> None:
    report = observed(
        spoilt(plain(), "MulBackward0", nan=1),
        alterations=(Alteration(A, "register_hook", 0, 1.0, 2.0),),
    )
    found = diagnose(report)
    assert [finding.rule for finding in found] == ["GS101", "GS504"]
    assert at_least(found, "error")
    ignored = diagnose(report, ignore=("GS101",))
    assert [finding.rule for finding in ignored] == ["GS504"]
    assert not at_least(ignored, "warning")


def test_codes_and_names_are_distinct() -> None:
    assert list(RULES) == sorted(RULES)
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
    assert all(isinstance(finding, Finding) for finding in diagnose(reports.broken()))


def test_steps_that_point_nowhere_are_refused() -> None:
    for seen in (
        {"steps": (Step(1, origin=99),)},
        {"skipped_steps": SkippedSteps(2, 1, 4, 2, "", 99)},
    ):
        with pytest.raises(ReportError, match="99 is not an index of"):
            check(observed(plain(), **seen))
    check(observed(plain(), steps=(Step(1, origin=0),)))


RANKS: dict[str, tuple[Report, str]] = {
    "all alike": (with_ranks(plain(), parameter()), ""),
    "on no rank": (with_ranks(plain(), parameter(local={0: None, 1: None})), ""),
    "not on one rank": (with_ranks(plain(), parameter(local={0: 1.0}, missing=(1,))), ""),
    "a lost rank is explained by it": (
        with_ranks(
            observed(plain(), failure=LOST),
            parameter(local={0: 1.0, 1: None}),
            each=(failed_rank(0, 1), failed_rank(1, 1)),
        ),
        "GS701 warning 1",
    ),
    "other values after other calls": (
        with_ranks(
            plain(), parameter(weights=(1.0, 2.0)), each=(OneRank(0, calls=1), OneRank(1, calls=2))
        ),
        "",
    ),
    "fewer calls because it failed": (
        with_ranks(plain(), each=(OneRank(0, calls=4), failed_rank(1, 3))),
        "",
    ),
    "fewer calls, and lost for an error of its own": (
        with_ranks(plain(), each=(failed_rank(0, 4), failed_rank(1, 3, "IndexError: index 7"))),
        "",
    ),
    "of itself": (with_ranks(plain(), each=(failed_rank(0, 4, "E"), OneRank(1, calls=3))), ""),
    "other numbers of calls, and all is well": (
        with_ranks(plain(), each=(OneRank(0, calls=4), OneRank(1, calls=3))),
        "",
    ),
}


TOLD = {
    **PROBABILITIES,
    **OBSERVED,
    **RANKS,
    "a lost term": (lost_term(A), "GS303 warning 8"),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_told_of_a_report(name: str) -> None:
    report, found = TOLD[name]
    assert told(report) == found


def of_rank(rank: int, code: str, step: int, line: int = 9) -> Finding:
    """What another rank found."""
    place = Location("demo.py", line)
    return Finding(code, "name", "error", "It is so.", place, step=step, ranks=(rank,))


def test_findings_of_all_ranks_are_told_once_each() -> None:
    others = (of_rank(1, "GS101", 2), of_rank(2, "GS105", 3), of_rank(3, "GS303", 3))
    for reduced, told in (True, [("GS101", (1,))]), (False, [("GS101", (1,)), ("GS105", (2,))]):
        each = [OneRank(rank, reduced=reduced) for rank in range(4)]
        found = diagnose(with_ranks(plain(), each=each, findings=others))
        assert [(one.rule, one.ranks) for one in found] == [*told, ("GS303", (3,))]
        averaged = ("ranks 0, 2 and 3 got it when the gradients were averaged",)
        assert found[0].evidence == (averaged if reduced else ())


def test_what_every_rank_finds_names_none() -> None:
    both = msgspec.structs.replace(of_rank(1, "GS303", 1), ranks=(0, 1))
    (found,) = diagnose(with_ranks(plain(), findings=(both,)))
    assert found.ranks == ()
    # Ignored rules are ignored on all ranks.
    assert diagnose(with_ranks(plain(), findings=(both,)), ("GS303",)) == ()
