"""The doctor from inside a program: one graph that is there, or a block of code that is watched."""

from __future__ import annotations

import contextlib
import gc
import textwrap
import threading
import traceback
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from torch import nn

import gradscope
from gradscope.errors import CaptureError, NoGraph
from gradscope.model import storage
from gradscope.model.invariants import check
from gradscope.model.observations import Observations
from tests.looking import Session, expressions, new_gradient, own_words
from tests.reports import small, transformer


def backward(loss: torch.Tensor) -> None:
    """As the program of a user calls it."""
    loss.backward()  # type: ignore[no-untyped-call]


def step(net: nn.Module) -> None:
    """One backward call of a healthy program."""
    backward(net(torch.ones(6, 4)).pow(2).mean())


def rules(report: gradscope.Report) -> list[str]:
    """The codes of the findings."""
    return [finding.rule for finding in report.findings]


# ---------------------------------------------------------------- a graph that is there


def test_a_built_graph_is_examined_and_left_as_it_was() -> None:
    x = torch.zeros(3, requires_grad=True)
    loss = (x.sqrt() * 0).sum()
    fired: list[torch.Tensor] = []
    x.register_post_accumulate_grad_hook(lambda one: fired.append(one))  # type: ignore[no-untyped-call]
    report = gradscope.doctor(loss)
    check(report)
    assert rules(report) == ["GS102"]
    assert new_gradient(report, "x").nan == 3
    assert (x.grad, fired) == (None, [])
    backward(loss)
    assert x.grad is not None and x.grad.isnan().all()


def test_notes_say_what_recording_would_add() -> None:
    x = torch.ones(3, requires_grad=True)
    plain = gradscope.doctor(x.sum())
    assert any("record(doctor=True)" in note for note in plain.notes)
    assert any("gradscope.record()" in note for note in plain.notes)
    with gradscope.record() as run:
        loss = (x * 2).sum()
    labelled = run.doctor(loss)
    assert expressions(labelled) == ["(x * 2).sum()", "x * 2"]
    assert not any("gradscope.record()" in note for note in labelled.notes)


def test_ignored_rules_stay_silent_and_unknown_ones_are_named() -> None:
    x = torch.zeros(3, requires_grad=True)
    loss = (x.sqrt() * 0).sum()
    assert rules(gradscope.doctor(loss, ignore=["nonfinite-backward"])) == []
    with pytest.raises(gradscope.GradscopeError, match="did you mean GS303 history-cut"):
        gradscope.doctor(loss, ignore=["history-cat"])
    with pytest.raises(TypeError, match=r"ignore=\['GS102'\]"):
        gradscope.doctor(loss, ignore="GS102")
    with pytest.raises(TypeError, match=r"not \[102\]"):
        gradscope.record(doctor=True, ignore=[102])  # type: ignore[list-item]


# ---------------------------------------------------------------- a block

PROGRAMS = {
    "healthy": ("loss = (net(x) * scale).pow(2).mean()", "optimizer.zero_grad()"),
    "cut": ("loss = net(x).detach().mean() + scale.sum()", "optimizer.zero_grad()"),
    "not zeroed": ("loss = net(x).pow(2).mean()", "pass"),
    "not finite": ("loss = (net(x) * 0).sqrt().mean()", "optimizer.zero_grad()"),
}
PROGRAM = """
    import torch
    from torch import nn
    {imports}

    with {block} as run:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
        scale = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([*net.parameters(), scale], lr=0.01)
        x = torch.randn(6, 4)
        for _ in range(5):
            {zero}
            {loss}
            loss.backward()
            optimizer.step()
    {after}
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_block_is_told_of_as_the_command_line_tells_of_a_program(
    name: str, session: Session
) -> None:
    loss, zero = PROGRAMS[name]
    parts: dict[str, str] = {"loss": loss, "zero": zero}
    bare = {"imports": "import contextlib", "block": "contextlib.nullcontext()", "after": ""}
    whole = session.look(
        PROGRAM.format(**parts, **bare), "--steps", "all", "--keep-going", command="doctor"
    )
    own = {"imports": "import gradscope", "block": "gradscope.record(doctor=True)"}
    text = textwrap.dedent(PROGRAM.format(**parts, **own, after="report = run.report()"))
    path = session.write(text, "block.py")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), namespace)
    report = namespace["report"]
    check(report)
    assert [(one.rule, one.severity, one.message) for one in report.findings] == [
        (one.rule, one.severity, one.message) for one in whole.findings
    ]
    assert [one.location and one.location.line for one in report.findings] == [
        one.location and one.location.line for one in whole.findings
    ]
    assert report.observations.calls == 5
    assert namespace["run"].findings == report.findings
    assert bool(report.findings) == (name != "healthy")
    # The same under the command line, which watches for itself as well.
    under = str(session.write(text + "report.save('inner.json')\n", "under.py"))
    for command in (["doctor", "--keep-going", "--steps", "all"], ["backward", "--run-on"]):
        session.cli(*command, under)
        inner = storage.load(session.folder / "inner.json")
        assert [one.rule for one in inner.findings] == rules(report), command
        (session.folder / "inner.json").unlink()


def test_a_block_is_never_stopped_and_what_it_raises_goes_on() -> None:
    net = nn.Linear(4, 1)
    error = KeyError("of the user")
    made = []
    with pytest.raises(KeyError) as caught, gradscope.record(doctor=True) as run:
        for number in range(3):
            (net(torch.ones(4)) * 0).sqrt().sum().backward()
            made.append(number)
        raise error
    assert made == [0, 1, 2]
    assert caught.value is error
    assert run.report().notes[-1] == "the block ended with KeyError: 'of the user'"
    assert rules(run.report())


def test_a_backward_call_that_fails_raises_as_without_us_and_is_diagnosed() -> None:
    net = nn.Linear(4, 2)

    def fails() -> None:
        net(torch.ones(6, 4)).backward()

    with pytest.raises(RuntimeError) as alone:
        fails()
    with pytest.raises(RuntimeError) as watched, gradscope.record(doctor=True) as run:
        fails()
    assert str(watched.value) == str(alone.value)

    def frames(error: BaseException) -> list[tuple[str, int | None]]:
        told = traceback.extract_tb(error.__traceback__)[1:]
        return [(frame.filename, frame.lineno) for frame in told]

    assert frames(watched.value) == frames(alone.value)
    assert rules(run.report()) == ["GS403"]


@contextlib.contextmanager
def recorded(doctor: bool) -> Iterator[None]:
    """A block of the program's around ours: contextlib keeps the traceback, and puts it back."""
    with gradscope.record(doctor=doctor):
        yield


@pytest.mark.parametrize("doctor", [False, True])
def test_tracebacks_are_pythons_inside_of_a_block_and_around_it(doctor: bool) -> None:
    def fails() -> None:
        nn.Linear(4, 2)(torch.ones(6, 3))

    def printed() -> str:
        try:
            fails()
        except RuntimeError:
            return traceback.format_exc()
        raise AssertionError

    alone = printed()
    with recorded(doctor):
        inside = printed()
    with pytest.raises(RuntimeError) as around, recorded(doctor):
        fails()
    told = "".join(traceback.format_exception(around.value))
    assert own_words(alone) == own_words(inside) == own_words(told) == []
    assert inside == alone
    assert printed() == alone


def test_a_report_is_asked_for_after_a_block_with_the_doctor() -> None:
    with gradscope.record(doctor=True) as run, pytest.raises(CaptureError, match="has not ended"):
        run.report()
    with gradscope.record() as plain:
        step(nn.Linear(4, 2))
    with pytest.raises(CaptureError, match=r"record\(doctor=True\)"):
        plain.report()


def test_a_block_without_a_backward_call_shows_the_result_it_left() -> None:
    net = nn.Linear(4, 2)
    with gradscope.record(doctor=True) as run:
        loss = net(torch.ones(4)).sum()
    report = run.report()
    assert "never called backward" in report.notes[0]
    assert report.graph.roots[0].label == "loss"
    assert loss.grad_fn is not None
    assert net.weight.grad is None


def test_a_graph_can_be_examined_within_a_block_that_is_watched() -> None:
    net, other = nn.Linear(4, 2), nn.Linear(4, 2)
    with gradscope.record(doctor=True) as run:
        loss = net(torch.ones(4)).sum() + other(torch.ones(4)).detach().sum()
        inside = run.doctor(loss)
        backward(loss)
    assert net.weight.grad is not None
    assert new_gradient(inside, "net.weight").state == "finite"
    # What was seen of the forward pass counts: an empty listener could not know of the cut.
    assert rules(inside) == rules(run.report()) != []
    assert run.report().observations.calls == 1  # type: ignore[union-attr]


class Bare(torch.optim.Optimizer):
    """Does not call the constructor of torch, which is where others are heard of."""

    def __init__(self, parameters: Any) -> None:
        self.param_groups = [{"params": list(parameters)}]
        self.defaults = {}


class Derived(torch.optim.SGD):
    """Made by torch's own constructor."""


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD, Derived, Bare])
@pytest.mark.parametrize("when", ["before", "in between", "at the end", "never"])
def test_optimizers_that_do_not_step_are_found(kind: Any, when: str) -> None:
    net, kept = nn.Linear(4, 2), []
    if when == "before":
        kept.append(kind(net.parameters()))
    with gradscope.record(doctor=True) as run:
        if when == "in between":
            kept.append(kind(net.parameters()))
        step(net)
        if when == "at the end" and kind is not Bare:  # nobody hears of that
            kept.append(kind(net.parameters()))
    seen = run.report().observations
    assert isinstance(seen, Observations)
    assert {one.in_optimizer for one in seen.learners} == {bool(kept) or None}


def test_blocks_leave_nothing_behind() -> None:
    def block() -> None:
        net = nn.Sequential(nn.Linear(4, 2), nn.Tanh())
        with gradscope.record(doctor=True) as run:
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            step(net)
            optimizer.step()
        assert not run.findings

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    for _ in range(4):
        block()
    before = objects()
    for _ in range(10):
        block()
    assert objects() - before < 10


def test_blocks_nest_and_each_tells_of_its_own_calls() -> None:
    net = nn.Linear(4, 2)
    with gradscope.record(doctor=True) as outer:
        step(net)
        with gradscope.record(doctor=True) as inner:
            step(net)
            with gradscope.record() as plain:
                loss = net(torch.ones(4)).sum()
        step(net)
    seen = [run.report().observations for run in (outer, inner)]
    assert [one.calls for one in seen if one] == [3, 1]
    assert expressions(plain.backward(loss))[0] == "net(torch.ones(4)).sum()"
    with gradscope.record(), gradscope.record(doctor=True) as within:
        step(net)
    assert within.report().observations.calls == 1  # type: ignore[union-attr]
    with gradscope.record(doctor=True) as again:
        step(net)
    assert again.report().observations.calls == 1  # type: ignore[union-attr]


def test_a_nested_block_hears_of_calls_beside_another_listener(session: Session) -> None:
    """The tape of ``check`` hears of every call; who joins in hears what it would alone."""
    text = """
        import gradscope, torch
        x = torch.ones(3, requires_grad=True)
        w = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([x, w], lr=0.1)
        with gradscope.record(doctor=True) as run:
            loss = (x * 2).sum() + (w * 3).detach().sum()
            loss.backward()
            optimizer.step()
        print([one.rule for one in run.findings])
    """
    done = session.told(text, "check --run-on")
    assert "right" in done.out
    assert "['GS303']" in done.out, done


def test_other_threads_are_told_of_and_not_harmed() -> None:
    net, told = nn.Linear(4, 2), SimpleNamespace(run=None)

    def work() -> None:
        with gradscope.record(doctor=True) as told.run:
            step(net)

    def in_a_thread() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    in_a_thread()
    assert told.run.report().observations.calls == 1
    with gradscope.record(doctor=True) as run:
        step(net)
        in_a_thread()
    with pytest.raises(CaptureError, match="another thread was being recorded"):
        told.run.report()
    assert any("in another thread" in note for note in run.report().notes)
    assert net.weight.grad is not None
    with gradscope.record(doctor=True) as run:
        in_a_thread()
    with pytest.raises(NoGraph, match="made in another thread"):
        run.report()


# ---------------------------------------------------------------- how they look


def test_a_report_is_short_where_it_is_printed() -> None:
    assert repr(gradscope.Report.of(small())).startswith("<Report ")
    large = repr(gradscope.Report.of(transformer(layers=12)))
    assert len(large) <= 200 and "leaves" in large and "finding" not in large
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    loss = (x * x).sum() / 2
    assert repr(gradscope.trace(loss)) == "<Report loss: 4 nodes, 1 leaf; .show()>"
    assert repr(gradscope.backward(loss)) == "<Report loss: 4 nodes, 1 leaf, ‖g‖ 5; .show()>"
    assert repr(gradscope.doctor(loss)).endswith("‖g‖ 5, 0 findings; .show()>")


@pytest.mark.parametrize("label", ["x" * 1000, "a\nb\x1b[2J", "\u202e" * 300, "<b>&", "é" * 90])
def test_a_hostile_name_neither_acts_nor_takes_room(label: str) -> None:
    report = small()
    root = msgspec.structs.replace(report.graph.roots[0], label=label)
    graph = msgspec.structs.replace(report.graph, roots=(root, *report.graph.roots[1:]))
    report = msgspec.structs.replace(report, graph=graph)
    shown = repr(gradscope.Report.of(report))
    assert len(shown) <= 200
    assert shown.isprintable()
