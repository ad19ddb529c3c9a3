"""Losses that a loop computes, with their graphs, and of which backward is called for the last one
only, because the call stands behind the loop.

Looked for where a call is looked at in full.  The graph of the last loss is all that was made since
the one before; a loss that goes through the whole loop is another matter.
"""

from __future__ import annotations

import ast

from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.analyses.training.loop_order import LoopOrder
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site, Sources

_NO_SEQUENCE = 2**63
"""Leaves are numbered beyond that."""


class DroppedLosses:
    """Such calls, told to the protocol of the loop."""

    def __init__(self, recorder: Recorder, order: LoopOrder) -> None:
        self._recorder = recorder
        self._order = order

    def look(self, made: FullCapture, since: int) -> None:
        """A call is about to be made; the one before was when so many nodes had been made."""
        numbers = [number for node in made.nodes if (number := node._sequence_nr()) < _NO_SEQUENCE]
        first = self._recorder.span_of(min(numbers, default=0))
        site = self._recorder.places.site_of(made.call.frame)
        if first is None or site is None:
            return
        times = self._recorder.spans.places_between(since, first.first).count(first.place)
        place = self._recorder.places.number(made.call.frame)
        if times and (line := left_by_loop(self._recorder.sources, site)):
            made_at = self._recorder.places.number_of_line(site.code, line)
            self._order.note("losses dropped", place, made_at, times)


def left_by_loop(sources: Sources, site: Site) -> int:
    """The line that makes what an expression is about, where it stands in a loop that is over by
    then, and does so in each of its rounds; 0 where there is none."""
    span, (first, lines) = sources.span(site), sources.lines_of(site.code)
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    line, names = (span[0] - first + 1 if span else 0), set(sources.operands(site))
    # What is assigned once more behind the loop is not the loop's.
    last = max(
        (
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
            and node.lineno < line
            and names & _names(node, ast.Store)
        ),
        default=0,
    )
    for loop in ast.walk(tree):
        if isinstance(loop, ast.For | ast.While) and (loop.end_lineno or line) < line:
            fresh = any(node.lineno == last and _is_fresh(node, names) for node in _rounds(loop))
            if fresh and not any(isinstance(node, ast.Break) for node in ast.walk(loop)):
                return last + first - 1
    return 0


def _rounds(loop: ast.For | ast.While) -> list[ast.stmt]:
    """The statements of a loop that no condition stands before."""
    blocks = [node.body for node in loop.body if isinstance(node, ast.With)]
    return [*loop.body, *(node for block in blocks for node in block)]


def _is_fresh(node: ast.stmt, names: set[str]) -> bool:
    """Whether a statement gives one of these names a value that does not come of the one before."""
    own = names & _names(node, ast.Store)
    return isinstance(node, ast.Assign) and not own & _names(node, ast.Load)


def _names(node: ast.stmt, context: type[ast.expr_context]) -> set[str]:
    found = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return {one.id for one in found if isinstance(one.ctx, context)}
