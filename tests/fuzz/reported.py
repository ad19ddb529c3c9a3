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
from tests.bare import Plain
from tests.beside import paired

Call = dict[str, Any]
_CLOSE = 1e-3
"""Norms of half precision are taken in single precision by one side, in double by the other."""


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
    pairs = _paired(report, call)
    if pairs is None:
        yield _another_graph(report, call)
    # A call that failed is looked at to where it came.
    elif not (call["failed"] or backward.error):
        yield from _gradients(report, pairs, call)
        yield from _leaves(backward, call)


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
    if report.graph.nodes and all(_paired(report, call) is None for call in calls):
        yield _another_graph(report, calls[0])


def _paired(report: Report, call: Call) -> dict[int, int] | None:
    """The node of the bare walk for each of the report's; None where it is another graph."""
    edges = [tuple(edge) for edge in call["edges"]]
    walked = Plain([tuple(root) for root in call["roots"]], call["nodes"], edges)
    try:
        pairs = paired(report, walked)
    except (AssertionError, KeyError, ValueError):
        return None
    is_whole = len(pairs) == len(walked.nodes) and len(report.graph.edges) == len(edges)
    names = (_name_of(report.graph.nodes[one]) == walked.nodes[live] for one, live in pairs.items())
    return pairs if is_whole and all(names) else None


def _another_graph(report: Report, call: Call) -> str:
    names: Counter[str] = Counter(map(_name_of, report.graph.nodes))
    expected: Counter[str] = Counter(call["nodes"])
    told = f"nodes: {dict(names - expected)} more, {dict(expected - names)} fewer"
    return f"{told}; {len(report.graph.edges)} edges, and a bare walk finds {len(call['edges'])}"


def _name_of(node: Node) -> str:
    if node.kind == "leaf":
        return "AccumulateGrad"
    return "custom" if node.kind in ("custom", "opaque") else node.op.rpartition("::")[2]


def _gradients(report: Report, pairs: dict[int, int], call: Call) -> Iterator[str]:
    backward = report.passes[0]
    for node, live in pairs.items():
        infos = [backward.gradients[index] for index in backward.upstream[node]]
        norms = call["upstream"][live]
        # A node whose gradient is only taken, as by torch.autograd.grad, is not called by the
        # engine, so that the hooks saw none.
        if norms is None and call["partial"]:
            continue
        seen = norms or [None] * len(infos)
        if len(infos) != len(seen) or not all(map(_agree, infos, seen)):
            told = [(info.state, info.norm) for info in infos]
            yield f"upstream gradient: {call['nodes'][live]} {told}, and a hook saw {norms}"
            return


def _agree(info: GradientInfo, norm: float | None) -> bool:
    """Whether a gradient is one of this norm, which is -1 where there are no numbers to read."""
    if info.state in ("none", "not reached") or norm is None:
        return info.state in ("none", "not reached") and norm is None
    if info.norm is None or norm == -1:
        return True
    found = float(info.norm)
    return math.isclose(found, norm, rel_tol=_CLOSE, abs_tol=1e-30) or str(found) == str(norm)


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
