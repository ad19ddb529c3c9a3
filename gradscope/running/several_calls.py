"""Several backward calls of one program: those that go into a later one, those that are passes
over one graph, and those that walk others.

A gradient penalty, a physics-informed loss, an inner step of meta-learning: the program takes a
gradient with ``create_graph`` and computes its loss from it.  Such a call is a part of the loss,
and what is asked about is the call that walks all of it.  Whether one comes is only known when it
does, so what was seen of the inner call is kept until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from gradscope.autograd.calls import BackwardCall
from gradscope.errors import GradscopeError
from gradscope.model.report import BackwardPass, Graph, Report
from gradscope.recording.recorder import Recorder

Answer = tuple[Report | None, GradscopeError | None]
"""What a look at one call gave: a report, or why there is none."""


@dataclass
class InnerCalls:
    """The inner calls since the last one that was none.

    ``are_kept``: what is shown holds the first of them as well, as a graph of its own.
    """

    recorder: Recorder
    are_kept: bool = False
    _first: Answer | None = None
    _numbers: list[int] = field(default_factory=list)
    _places: dict[str, None] = field(default_factory=dict)

    def put(self, call: BackwardCall, number: int, answer: Answer) -> None:
        """Remember an inner call; what was seen of it counts if no later one builds on it."""
        # A call that can be shown is a better answer than one that cannot.
        if self._first is None or self._first[0] is None:
            self._first = answer
        self._numbers.append(number)
        site = self.recorder.places.site_of_call(call.frame)
        if site is not None:
            origin = self.recorder.sources.origin(site)
            self._places[str(origin)] = None

    def chosen(self, last: Answer) -> Answer:
        """What is to be shown: of the call that came after the inner ones, or of the first of
        them, where that one does not build on them."""
        first, self._first = self._first, None
        if first is None:
            return last
        answer, other = last, first[0]
        report, _ = last
        # What an inner call has made is the sign that this call builds on it.
        if report is not None and any(node.backward_made for node in report.graph.nodes):
            notes = (*report.notes, self._note())
            answer = msgspec.structs.replace(report, notes=notes), last[1]
        elif first[0] is not None:
            answer, other = first, report
        if self.are_kept and answer[0] is not None and other is not None:
            answer = joined(answer[0], other), answer[1]
        return answer

    def _note(self) -> str:
        first, last = self._numbers[0], self._numbers[-1]
        are = f"call {first} is" if first == last else f"calls {first} to {last} are"
        at = f" at {', '.join(self._places)}" if self._places else ""
        shown = "" if self.are_kept else f"; --call {first} shows it"
        return f"{are} torch.autograd.grad{at}, whose result this call uses{shown}"


MOST_GRAPHS = 12
"""That one report holds; each may be of any size."""


def joined(report: Report, later: Report) -> Report:
    """The report with the pass of a later call: on the graph that it walked, which may be one more.

    What else is known of nodes and leaves, such as their values, stays that of the first call which
    walked a graph.
    """
    if _is_same(report.graph, later.graph):
        return _with_pass(report, later)
    others = list(report.others)
    for position, other in enumerate(others):
        if _is_same(other.graph, later.graph):
            others[position] = _with_pass(other, later)
            break
    else:
        if len(others) + 1 == MOST_GRAPHS:
            (number,) = later.call_numbers
            note = (
                f"backward call {number} walks another graph and is not shown here, because there "
                f"are {MOST_GRAPHS} already; --call {number} shows it"
            )
            return msgspec.structs.replace(report, notes=(*report.notes, note))
        others.append(later)
    return msgspec.structs.replace(report, others=tuple(others))


def _with_pass(report: Report, later: Report) -> Report:
    graph, added = _placed(report.graph, later.graph, later.passes[0])
    notes = dict.fromkeys((*report.notes, *later.notes))
    return msgspec.structs.replace(
        report, graph=graph, passes=(*report.passes, added), notes=tuple(notes)
    )


def _is_same(one: Graph, other: Graph) -> bool:
    return (
        len(one.nodes) == len(other.nodes)
        and one.edges == other.edges
        and [(root.node, root.output) for root in one.roots]
        == [(root.node, root.output) for root in other.roots]
        and all(a == b for a, b in zip(_kinds(one), _kinds(other), strict=True))
    )


def _kinds(graph: Graph) -> Iterator[tuple[object, ...]]:
    # Values are no part of it: they differ from step to step.  What is called otherwise is another
    # graph: of two networks of one class, or two losses, each gradient is said at its own place.
    names = {leaf.node: leaf.names[:1] for leaf in graph.leaves}
    for node in graph.nodes:
        origin = None if node.origin is None else graph.origins[node.origin]
        shapes = (info and (info.shape, info.dtype) for info in node.outputs)
        yield node.op, node.kind, origin, names.get(node.id), *shapes


def _placed(graph: Graph, other: Graph, added: BackwardPass) -> tuple[Graph, BackwardPass]:
    """The call's own line as an index into the first graph's table, which may not have it yet."""
    if added.origin is None:
        return graph, added
    origin = other.origins[added.origin]
    origins = graph.origins if origin in graph.origins else (*graph.origins, origin)
    placed = msgspec.structs.replace(added, origin=origins.index(origin))
    return msgspec.structs.replace(graph, origins=origins), placed
