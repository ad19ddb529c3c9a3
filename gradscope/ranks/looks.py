"""From a Report to what a rank tells of it: small, and without what only the whole report needs;
and, unasked, the gradients of a few ranks, for all gradients of a graph are not small.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from gradscope.model.observations import Observations
from gradscope.model.plain import Number
from gradscope.model.ranks import FEW, RankLook, RankParameter
from gradscope.model.report import GradientInfo, Report
from gradscope.ranks import Job
from gradscope.ranks.board import Board
from gradscope.words import first_line

SAME = 1e-5
"""Relative difference of two norms up to which they are of the same numbers."""

LONGEST = 300
"""Characters that are told of an error."""


def look_of(
    report: Report | None, job: Job, error: str, calls: int, is_fault: bool = False
) -> RankLook:
    """What a rank tells of its report, or of why it has none: by a fault of ours, or not."""
    host = socket.gethostname()
    if report is None:
        told, fault = ("", error) if is_fault else (error, "")
        return RankLook(job.rank, host=host, calls=calls, error=told, fault=fault)
    seen, graph = report.observations, report.graph
    kinds = [(node.op, len(node.outputs)) for node in graph.nodes]
    return RankLook(
        rank=job.rank,
        host=host,
        calls=calls or (seen.calls if seen else 0),
        nodes=len(graph.nodes),
        graph=_digest(kinds, graph.edges, [(root.node, root.output) for root in graph.roots]),
        shapes=_digest([[info and info.shape for info in node.outputs] for node in graph.nodes]),
        call=report.passes[0].number if report.passes else 0,
        reduced=_is_reduced(report),
        parameters=tuple(_parameters(report)),
        findings=report.findings,
        fault=seen.faults[0] if seen and seen.faults else "",
        error=error or _failure(report),
        held=report.memory.total("activation") if report.memory else None,
    )


def _seen(report: Report) -> Observations:
    """What the doctor has seen; nothing where nobody was asked to look."""
    seen = report.observations
    return seen if isinstance(seen, Observations) else Observations()


def _failure(report: Report) -> str:
    seen = _seen(report)
    if seen.failure is not None:
        return f"{seen.failure.type}: {first_line(seen.failure.message)[:LONGEST]}"
    return report.passes[0].error[:LONGEST] if report.passes else ""


def _digest(*told: object) -> str:
    return blake2b(msgspec.msgpack.encode(told), digest_size=8).hexdigest()


def _is_reduced(report: Report) -> bool:
    """Whether something has changed the gradients on their way into an empty ``.grad``."""
    if _seen(report).averages:
        return True
    for backward in report.passes[:1]:
        for entry in backward.accumulations:
            if entry.copies:
                return True
            if entry.before is None and entry.after is not None:
                new, after = backward.gradients[entry.new], backward.gradients[entry.after]
                if new.state != after.state or not _is_close(new.norm, after.norm):
                    return True
    return False


def _is_close(one: Number | None, other: Number | None) -> bool:
    if one is None or other is None or one == other:
        return one == other
    return math.isclose(float(one), float(other), rel_tol=SAME)


def _parameters(report: Report) -> Iterable[RankParameter]:
    backward = report.passes[0] if report.passes else None
    seen = _seen(report)
    # At the end of the run the ranks have made the same updates, if they do.
    sizes = {one.name: one.size for one in seen.learners}
    used: dict[str, int] = {}
    for index, leaf in enumerate(report.graph.leaves):
        name = leaf.names[0] if leaf.names else f"leaf of {leaf.tensor.shape}"
        # Two leaves without a name of their own are told apart by their order.
        used[name] = used.get(name, 0) + 1
        name = name if used[name] == 1 else f"{name} ({used[name]})"
        if backward is None:
            yield RankParameter(name, leaf.tensor.shape, None, None, sizes.get(name, leaf.norm))
            continue
        entry = backward.accumulations[index]
        after = None if entry.after is None else backward.gradients[entry.after]
        local = _without_values(backward.gradients[entry.new])
        if backward.error and local is not None and local.state in ("none", "not reached"):
            # The call failed before it came so far: nobody knows what it would have brought.
            local = None
        size = sizes.get(name, leaf.norm)
        yield RankParameter(
            name, leaf.tensor.shape, local, _without_values(after), size, entry.copies
        )
    for one in seen.learners:
        if one.leaf is None and one.in_module and one.requires_grad and one.name not in used:
            used[one.name] = 1
            nothing = GradientInfo("not reached")
            yield RankParameter(one.name, one.tensor.shape, nothing, None, one.size)


def _without_values(info: GradientInfo | None) -> GradientInfo | None:
    if info is None:
        return None
    return msgspec.structs.replace(info, values=None, histogram=None)


# ---------------------------------------------------------------- every gradient of a few ranks


def leave_passes(board: Board, rank: int, report: Report | None) -> None:
    """Leave all gradients of a rank for the one that collects, if they are wanted.

    Raises:
        NoAnswer: the store does not answer.
    """
    if report is not None and report.passes and 0 < rank < FEW:
        board.put(f"passes/{rank}", msgspec.msgpack.encode(report.passes))
