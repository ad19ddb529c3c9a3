"""A report with the indices that rules look things up in, and the words they have in common.

Knows no rule.  Nothing here walks by recursion: graphs may be chains of 100,000 nodes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import Any, TypedDict, TypeVar, Unpack

from gradscope.model.observations import Finding, Location, NodeReference, Observations, Severity
from gradscope.model.plain import Number
from gradscope.model.report import (
    COMPILED,
    BackwardPass,
    GradientInfo,
    Graph,
    Node,
    Report,
    way_inside,
)
from gradscope.walks import walk
from gradscope.words import one_line

T = TypeVar("T")

_CONNECTIONS = ("Connection closed by peer", "Connection reset by peer", "gloo/", "NCCL")
"""Words of the errors that are raised where another process does not answer any more."""


def tells_of_a_lost_rank(message: str) -> bool:
    """Whether an error says that a process that was waited for has ended."""
    return any(one in message for one in _CONNECTIONS)


class FindingDraft(Finding, frozen=True, kw_only=True):
    """A finding as a rule makes it: without the rule's code and name, and with what another finding
    must have in common with it for one to make the other superfluous.

    ``nodes`` are all that it is about; ``fails``: it says why the program failed, or could have;
    ``of_values``: it holds for the numbers of this step, and for others it may not.
    """

    rule: str = ""
    name: str = ""
    nodes: Collection[int] = ()
    fails: bool = False
    of_values: bool = False


class Details(TypedDict, total=False):
    """What a finding says besides its message; the fields of :class:`FindingDraft`."""

    location: Location | None
    subject: str
    evidence: str | Iterable[str]
    why: str
    remedy: str
    step: int
    nodes: Collection[int]
    fails: bool
    of_values: bool


class Facts:
    """One report, read by all rules."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.graph: Graph = report.graph
        self.backward: BackwardPass | None = report.passes[0] if report.passes else None
        # Of a saved report only the figures are there, which no rule can do much with.
        seen = report.observations
        self.seen = seen if isinstance(seen, Observations) else Observations()
        self._made: dict[Callable[[Facts], Any], Any] = {}

    def once(self, make: Callable[[Facts], T]) -> T:
        """What ``make`` finds out about these facts; made only once, though several rules ask."""
        if make not in self._made:
            self._made[make] = make(self)
        found: T = self._made[make]
        return found

    @cached_property
    def outgoing(self) -> list[list[int]]:
        """For every node the indices of the edges on which it sends gradients."""
        rows: list[list[int]] = [[] for _ in self.graph.nodes]
        for index, edge in enumerate(self.graph.edges):
            rows[edge.source].append(index)
        return rows

    @cached_property
    def incoming(self) -> list[list[int]]:
        """For every node the indices of the edges on which gradients reach it."""
        rows: list[list[int]] = [[] for _ in self.graph.nodes]
        for index, edge in enumerate(self.graph.edges):
            rows[edge.target].append(index)
        return rows

    @cached_property
    def leaf_names(self) -> dict[int, str]:
        """The best name of every leaf, by its node."""
        return {leaf.node: (*leaf.names, f"#{leaf.node}")[0] for leaf in self.graph.leaves}

    @property
    def step(self) -> int:
        """The number of the backward call that this report is of, 0 for none."""
        return self.backward.number if self.backward else 0

    @property
    def has_lost_a_rank(self) -> bool:
        """Whether the program failed because a process that it waited for has ended."""
        failure = self.seen.failure
        return failure is not None and tells_of_a_lost_rank(failure.message)

    @property
    def loss(self) -> Number | None:
        """The loss of that call, where it was a number."""
        return next((step.loss for step in self.seen.steps if step.number == self.step), None)

    def has_nonfinite(self) -> bool:
        """Whether any number that was seen is NaN or infinite."""
        seen, passes, graph = self.seen, self.report.passes, self.graph
        outputs = (one for node in graph.nodes for one in node.outputs if one is not None)
        tensors = itertools.chain(outputs, (leaf.tensor for leaf in graph.leaves))
        return (
            bool(seen.intakes or seen.spoiling_steps)
            or isinstance(self.loss, str)
            or any(info.state == "non-finite" for one in passes for info in one.gradients)
            or any(one.nan or one.inf for one in tensors)
        )

    def below(self, node: int) -> Iterable[int]:
        """The nodes to which a node sends gradients."""
        return (self.graph.edges[index].target for index in self.outgoing[node])

    def above(self, node: int) -> Iterable[int]:
        """The nodes from which a node receives gradients."""
        return (self.graph.edges[index].source for index in self.incoming[node])

    def op(self, node: int) -> str:
        """``Log`` for ``LogBackward0``."""
        return self.graph.nodes[node].short_op

    def received(self, node: int) -> list[GradientInfo]:
        """The upstream gradients of a node."""
        if self.backward is None:
            return []
        return [self.backward.gradients[entry] for entry in self.backward.upstream[node]]

    def sent(self, node: int) -> list[tuple[int, GradientInfo]]:
        """What a node sent: target and gradient for every edge."""
        if self.backward is None:
            return []
        edges = self.graph.edges
        return [(edges[i].target, self.backward.on_edge(i)) for i in self.outgoing[node]]

    def has_elements(self, node: int) -> bool:
        """Whether any result of a node holds an element; where torch tells no shape, it may."""
        return any(one is None or elements(one.shape) for one in self.graph.nodes[node].outputs)

    def location(self, origin: int | None) -> Location | None:
        """A place that a reader can go to."""
        if origin is None:
            return None
        record = self.graph.origins[origin]
        return Location(record.file, record.line, record.expression)

    def at(self, origin: int | None) -> str:
        """`` at train.py:7``, to go on with in a sentence; "" where nothing is known."""
        place = self.location(origin)
        return f" at {place}" if place else ""

    def same_line(self, one: int | None, other: int | None) -> bool:
        """Whether two places are in the same line."""
        places = self.location(one), self.location(other)
        lines = [(at.file, at.line) for at in places if at is not None]
        return len(lines) == 2 and lines[0] == lines[1]

    def placed(self, origin: int | None, otherwise: str) -> str:
        """``optimizer.step()`` at train.py:7."""
        place = self.location(origin)
        return f"{self.expression(origin)} at {place}".strip() if place else otherwise

    def reference(self, node: int) -> NodeReference:
        """A node as findings name it."""
        return NodeReference(node, self.graph.nodes[node].op)

    def variable(self, origin: int | None) -> str:
        """What the result of an expression was assigned to, or ""."""
        return "" if origin is None else self.graph.origins[origin].variable

    def expression(self, origin: int | None) -> str:
        """The user's words on one line, in backticks, or ""."""
        text = "" if origin is None else one_line(self.graph.origins[origin].expression)
        return f"`{text}`" if text else ""

    def words(self, node: int) -> str:
        """A node in a sentence: the user's expression, or its op."""
        return self.expression(self.graph.nodes[node].origin) or self.op(node)

    def subject(self, node: int) -> str:
        """The variable that a node's result was assigned to, else its module."""
        record = self.graph.nodes[node]
        origin = self.graph.origin_of(record)
        return record.variable or (origin.variable if origin else "") or self.module(record)

    def module(self, node: Node) -> str:
        """The path of the module in which a node was made."""
        return self.graph.module_of(node)

    def finding(
        self, severity: Severity, message: str, node: int | None = None, **details: Unpack[Details]
    ) -> FindingDraft:
        """A finding; one about a node is placed where that was made, and named after it, unless
        ``details`` know better."""
        fields: dict[str, Any] = {}
        if node is not None:
            fields["location"] = self.location(self.graph.nodes[node].origin)
            fields.update(node=self.reference(node), subject=self.subject(node), nodes=(node,))
        fields.update((key, value) for key, value in details.items() if value is not None)
        lines = details.get("evidence", ())
        fields["evidence"] = (lines,) if isinstance(lines, str) else tuple(lines)
        if node is not None and self.graph.nodes[node].kind == "opaque":
            fields["remedy"] = f"{fields.get('remedy', '')} {self.way_inside(node)}".strip()
        return FindingDraft(severity=severity, message=message, **fields)

    def warning(
        self, message: str, node: int | None = None, **details: Unpack[Details]
    ) -> FindingDraft:
        """A finding that is a warning."""
        return self.finding("warning", message, node, **details)

    def is_compiled(self, node: int) -> bool:
        """Whether torch.compile made a node."""
        record = self.graph.nodes[node]
        return record.kind == "opaque" and COMPILED in record.op

    def way_inside(self, node: int) -> str:
        """How to see the line behind a node that hides operations."""
        way = way_inside(self.graph.nodes[node].op)
        return f"{way[:1].upper()}{way[1:]} for the line."

    def reachable(self, starts: Collection[int]) -> set[int]:
        """All nodes below these, and themselves."""
        return set(walk(starts, self.below))

    def reaching(self, leaves: Iterable[int]) -> set[int]:
        """All nodes through which these leaves get a gradient, and themselves."""
        return set(walk(leaves, self.above))

    def by_place(self, nodes: Iterable[int]) -> dict[tuple[int | None, str], list[int]]:
        """Nodes that the same expression made by the same op, as in a loop, are one cause."""
        groups: dict[tuple[int | None, str], list[int]] = {}
        for node in nodes:
            record = self.graph.nodes[node]
            groups.setdefault((record.origin, record.op), []).append(node)
        return groups


def short(value: Number | None, digits: int = 3) -> str:
    """A number for a sentence."""
    if value is None:
        return "?"
    number = float(value)
    return f"{number:.{digits}g}" if math.isfinite(number) else str(value)


def elements(shape: Iterable[int]) -> int:
    """How many elements a shape has."""
    return math.prod(shape)
