"""What a written report must say: that it is whole, and what the independent hooks saw."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy

from gradscope.errors import ReportError
from gradscope.model import storage
from gradscope.model.report import BackwardPass, GradientInfo, Node, Report
from gradscope.render import Options
from gradscope.render.answers import diagnosis

Call = dict[str, Any]
_CLOSE = 1e-3
"""Norms of half precision are taken in single precision by one side, in double by the other."""

Arrived = tuple[str, tuple[float | str | None, ...] | None]
"""A node's name, and the norm of what it received for each output; None where it was not called."""


def mistakes(path: Path, command: Sequence[str], calls: Sequence[Call]) -> Iterator[str]:
    """What is wrong with the report at ``path``; nothing where it agrees.

    Args:
        path: the file.
        command: the arguments it was made with.
        calls: the program's backward calls, as :mod:`tests.fuzz.independent` saw them.
    """
    try:
        # Loading checks the invariants; saving again must give the same.
        report = storage.load(path)
        again = storage.decode(storage.encode(report))
    except ReportError as error:
        yield f"broken report: {error.what}"
        return
    if again != report:
        yield "a report that is saved and loaded again is another one"
    if command[0] == "doctor":
        calls = [call for call in calls if not call["rehearsed"]]
    if {"--gradient", "--root", "--create-graph"} & set(command) or not calls:
        return
    if not report.passes or not report.passes[0].number:
        # Of one that failed, or has no call to be looked at, it may be of the last result.
        others = ("ended with", "with is_grads_batched", "the result that it left")
        if not any(words in note for note in report.notes for words in others):
            yield from _graph_of_some(report, calls)
        return
    backward = report.passes[0]
    if backward.number > len(calls):
        yield f"call {backward.number} is shown, and the program made {len(calls)}"
        return
    call = calls[backward.number - 1]
    yield from _graph(report, call)
    # A call that failed is looked at to where it came.
    if not (call["failed"] or backward.error):
        yield from _gradients(report, backward, call)


def told(path: Path) -> str:
    """What the doctor prints of the report that it wrote, or ""."""
    try:
        report = storage.load(path)
    except ReportError:
        return ""
    return diagnosis.FORMATS["text"](report, Options(width=100, color=False, unicode=True))


def _graph_of_some(report: Report, calls: Sequence[Call]) -> Iterator[str]:
    """The report does not say which call it was made at: the graph is that of one of them."""
    # The doctor passes on what is no training step; others show the first call, or the one after
    # a gradient that a later call builds on.
    wrong = [list(_graph(report, call)) for call in calls]
    if all(wrong) and report.graph.nodes:
        yield wrong[0][0]


def _graph(report: Report, call: Call) -> Iterator[str]:
    names = Counter(map(_name_of, report.graph.nodes))
    expected: Counter[str] = Counter(call["nodes"])
    if names != expected:
        yield f"nodes: {dict(names - expected)} more, {dict(expected - names)} fewer"
    elif len(report.graph.edges) != call["edges"]:
        yield f"edges: {len(report.graph.edges)}, and a bare walk finds {call['edges']}"


def _name_of(node: Node) -> str:
    if node.kind == "leaf":
        return "AccumulateGrad"
    return "custom" if node.kind in ("custom", "opaque") else node.op.rpartition("::")[2]


def _gradients(report: Report, backward: BackwardPass, call: Call) -> Iterator[str]:
    found = sorted((_arrived(node, backward) for node in report.graph.nodes), key=_order)
    pairs = zip(call["nodes"], call["upstream"], strict=True)
    expected: list[Arrived] = sorted((_expected(*pair) for pair in pairs), key=_order)
    if len(found) != len(expected):
        return
    if call["partial"]:
        # A node whose gradient is only taken, as by torch.autograd.grad, is not called by the
        # engine, so the hooks saw fewer.
        found, expected = _paired(found, expected)
    for one, other in zip(found, expected, strict=True):
        if not _agree(one, other):
            yield f"upstream gradient: {_words(one)}, and a hook saw {_words(other)}"
            return
    yield from _leaves(backward, call)


def _paired(found: list[Arrived], expected: list[Arrived]) -> tuple[list[Arrived], list[Arrived]]:
    """For each node that was called the one that is most like it."""
    called = [one for one in expected if one[1] is not None]
    rest, pairs = list(found), []
    for one in called:
        alike = [other for other in rest if _agree(other, one)]
        other = alike[0] if alike else next(other for other in rest if other[0] == one[0])
        rest.remove(other)
        pairs.append(other)
    return pairs, called


def _leaves(backward: BackwardPass, call: Call) -> Iterator[str]:
    """The .grad of the leaves after the call, to the last bit where the report has the values."""
    if any(entry.after is None for entry in backward.accumulations):
        return
    after = [backward.gradients[entry.after or 0] for entry in backward.accumulations]
    small = sorted(_bits(info) for info in after if info.values is not None)
    expected = sorted(
        (entry["dtype"], tuple(map(repr, entry["values"])))
        for entry in call["leaves"]
        if entry["values"] is not None
    )
    if small != expected and len(small) == len(expected):
        pair = next(pair for pair in zip(small, expected, strict=True) if pair[0] != pair[1])
        yield f".grad after the call: {pair[0]}, and torch has {pair[1]}"


def _bits(info: GradientInfo) -> tuple[str, tuple[str, ...]]:
    numbers = [float(value) for value in info.values or ()]
    if info.dtype in ("float32", "complex64"):
        with numpy.errstate(over="ignore"):
            numbers = [float(numpy.float32(value)) for value in numbers]
    return info.dtype, tuple(map(repr, numbers))


def _arrived(node: Node, backward: BackwardPass) -> Arrived:
    infos = [backward.gradients[index] for index in backward.upstream[node.id]]
    if all(info.state == "not reached" for info in infos):
        return _name_of(node), None
    return _name_of(node), tuple(map(_size, infos))


def _size(info: GradientInfo) -> float | str | None:
    if info.state in ("none", "not reached"):
        return None
    if info.norm is None:
        return "unread"
    norm = float(info.norm)
    return norm if math.isfinite(norm) else str(norm)


def _expected(name: str, norms: Sequence[float | None] | None) -> Arrived:
    if norms is None:
        return name, None
    return name, tuple(
        norm
        if norm is None or (math.isfinite(norm) and norm >= 0)
        else ("unread" if norm == -1 else str(norm))
        for norm in norms
    )


def _order(arrived: Arrived) -> tuple[str, int, tuple[tuple[int, float], ...]]:
    name, norms = arrived
    keys = {None: 0, "unread": 1, "nan": 2, "inf": 3}
    numbers = [(4, norm) if isinstance(norm, float) else (keys[norm], 0.0) for norm in norms or ()]
    return name, norms is not None, tuple(numbers)


def _agree(found: Arrived, expected: Arrived) -> bool:
    if found[0] != expected[0]:
        return False
    if found[1] is None or expected[1] is None:
        # A node that was called with nothing may count as not reached.
        rest = found[1] if expected[1] is None else expected[1]
        return not any(norm is not None for norm in rest or ())
    return len(found[1]) == len(expected[1]) and all(map(_close, found[1], expected[1]))


def _close(found: float | str | None, expected: float | str | None) -> bool:
    if "unread" in (found, expected):
        return found is not None and expected is not None
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=_CLOSE, abs_tol=1e-30)
    return found == expected


def _words(arrived: Arrived) -> str:
    name, norms = arrived
    return f"{name} {'not reached' if norms is None else list(norms)}"
