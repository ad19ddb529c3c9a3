"""Where a gradient is taken apart, and into what: terms of the root, or tensors that are named;
rows of tensors, or elements of a root."""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from gradscope.analyses.explain.lockstep import WHOLE, Carried
from gradscope.analyses.explain.pull import Place
from gradscope.errors import RootError
from gradscope.graphing.study import LiveGraph, named_place
from gradscope.model.plain import Number, number
from gradscope.model.report import Graph, Node
from gradscope.model.studies import MOST_COMPARED, SplitPiece
from gradscope.words import count, either, one_line, option

_ADDING = frozenset(("Add", "Sub", "Rsub", "Where"))
_JOINING = frozenset(("Stack", "Cat"))
_SCALING = frozenset(
    ("Mul", "Div", "Neg", "ToCopy", "Clone", "Alias", "View", "UnsafeView", "Squeeze", "Unsqueeze")
)
_REDUCING = frozenset(("Sum", "Mean", "Dot", "Mv"))

MOST_PASSED = 10_000
"""Nodes that are passed on the way to terms."""


class Summands:
    """The terms of the roots of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._under: dict[int, list[Place]] = defaultdict(list)
        for edge in graph.edges:
            self._under[edge.source].append((edge.target, edge.output))
        self._divisors = {edge.source for edge in graph.edges if edge.slot}
        self.added: set[Place] = set()
        """What was found to count in a root as often as its gradient says."""

    @property
    def scaled(self) -> dict[int, Place]:
        """Return what each node scales or reshapes, where it has no other operand."""
        return {
            node: under[0]
            for node, under in self._under.items()
            if len(under) == 1 and self._op(node) in _SCALING
        }

    def under(self, node: int) -> list[Place]:
        """The tensors that a node sends gradients to."""
        return self._under[node]

    def found(self) -> list[Place]:
        """The tensors that the roots are sums of, those made first to the front.

        What is only scaled or reshaped on the way is passed.  Sums of the elements of one tensor
        are taken apart only where there is nothing else to tell apart: ``mse + kl.sum()`` has two
        terms, ``(mse + kl).mean()`` as well.
        """
        tops = list(dict.fromkeys((root.node, root.output) for root in self._graph.roots))
        while True:
            found = self._summands(tops)
            ends = [node for node, _ in found.values()]
            if len(found) != 1 or not self._reduces(ends[0]):
                return sorted(found, reverse=True)
            # One term alone, which is a sum over a tensor: that may be one of several.
            tops = self._under[ends[0]]

    def _summands(self, tops: Sequence[Place]) -> dict[Place, Place]:
        """The summands of some tensors; of each where what it is made of begins."""
        found: dict[Place, Place] = {}
        stack = [(top, top, -1) for top in reversed(tops)]
        seen: set[Place] = set()
        while stack:
            at, top, above = stack.pop()
            under = self._under[at[0]]
            if not self._is_passed(at[0]) or len(seen) >= MOST_PASSED:
                found[top] = at
            elif at not in seen:
                seen.add(at)
                # What a sum adds to a constant is still all of that term, but for `sum` itself,
                # and a loop, which begin with 0.
                is_split = len(under) > 1 or self._is_same_sum(at[0], above)
                above = at[0] if is_split else above
                stack.extend((one, one if is_split else top, above) for one in reversed(under))
        self.added |= {*seen, *found, *found.values()}
        return found

    def _is_passed(self, number: int) -> bool:
        """Whether a node is a sum of what is under it, each element of which counts as often as
        any other."""
        op, under = self._op(number), self._under[number]
        if not under:
            return False
        if op in _ADDING or op in _JOINING:
            return True
        if len(under) > 1:
            return False
        if self._reduces(number):
            return self.is_joined(under[0][0])
        return op in _SCALING and not (op == "Div" and number in self._divisors)

    def _is_same_sum(self, number: int, above: int) -> bool:
        """Whether a node adds at the very place where the one above it does."""
        origins = {self._graph.nodes[node].origin for node in (number, above)}
        return above >= 0 and self._op(number) in _ADDING and len(origins) == 1

    def _reduces(self, number: int) -> bool:
        return self._op(number) in _REDUCING and len(self._under[number]) == 1

    def is_joined(self, number: int) -> bool:
        """Whether a tensor is put together of numbers."""
        while self._op(number) in _SCALING and len(self._under[number]) == 1:
            ((number, _),) = self._under[number]
        parts = (self._graph.nodes[node] for node, _ in self._under[number])
        return self._op(number) in _JOINING and all(map(_is_number, parts))

    def _op(self, number: int) -> str:
        node = self._graph.nodes[number]
        return node.short_op if node.kind == "op" else ""


def _is_number(node: Node) -> bool:
    info = node.outputs[0] if len(node.outputs) == 1 else None
    return info is not None and math.prod(info.shape) == 1


_ROWWISE = frozenset(
    ("LogSoftmax", "Softmax", "View", "UnsafeView", "Clone", "ToCopy", "Neg", "Mul", "Div")
)
"""Operations that leave each row for itself, or tell rows by two dimensions rather than one."""

FAR = 12
"""Nodes behind a loss among which its rows are looked for."""

MOST_TOLD_APART = 8
"""Terms up to which those of one line are told apart."""


@dataclass
class Plan:
    """The pieces; at which places each is taken off the gradient, and which part of it then.

    ``rows`` names the tensors whose rows are samples, ``total`` counts all that could be pieces.
    ``counts`` is how often what is one number there counts in the root: the gradient that it gets.
    """

    pieces: list[SplitPiece]
    places: Mapping[Place, Sequence[int]]
    take: Callable[[torch.Tensor, int], torch.Tensor] = lambda gradient, _: gradient
    rows: tuple[str, ...] = ()
    total: int = 0
    counts: dict[Place, float] = field(default_factory=dict)

    def told(self, chosen: range) -> str:
        of = f" of {len(self.pieces):,}" if len(chosen) < len(self.pieces) else ""
        return f"following pieces {chosen.start + 1:,} to {chosen.stop:,}{of}"

    def cut(self, chosen: range, place: Place, gradient: torch.Tensor) -> Carried:
        """A gradient taken apart, where only some of the pieces are followed."""
        if place not in self.places:
            return {WHOLE: gradient}
        if gradient.numel() == 1 and not gradient.is_complex():
            self.counts[place] = float(gradient)
        return {at: self.take(gradient, at) for at in self.places[place] if at in chosen}


class TensorNames:
    """What the program calls the tensors of a graph."""

    def __init__(self, live: LiveGraph) -> None:
        self._graph = live.probe.graph
        self._leaves = {leaf.node: leaf.names for leaf in self._graph.leaves}
        self._scaled = Summands(self._graph).scaled
        held = live.probe.held.items()
        self._held = {place: live.scopes.names(tensor)[0] for place, tensor in held}

    def of(self, place: Place) -> str:
        """The variable that holds a tensor, or held it, or the expression that made it; where none
        is known, that of the tensor which it scales, or its operation."""
        name, at = self._known(place), place
        while not name and (under := self._scaled.get(at[0])):
            name, at = self._known(under), under
        node = self._graph.nodes[place[0]]
        return name or f"{node.short_op} #{node.id}"

    def _known(self, place: Place) -> str:
        node = self._graph.nodes[place[0]]
        origin = self._graph.origin_of(node)
        expression = "" if origin is None else one_line(origin.expression)
        names = (self._held.get(place), *self._leaves.get(node.id, ()), node.variable, expression)
        # `loss = a + b` may stand at `a` as well, which is no use for telling them apart.
        roots = {root.label for root in self._graph.roots if (root.node, root.output) != place}
        return next((name for name in names if name and name not in roots), "")


def by_term(live: LiveGraph, names: Sequence[str]) -> Plan:
    """The terms that the roots add up, or tensors that are named.

    Raises:
        RootError: the root is one term.
        CaptureError: the graph has no such tensor.
    """
    return _of_names(live, names) if names else _of_root(live)


def _of_root(live: LiveGraph) -> Plan:
    graph = live.probe.graph
    tops = Summands(graph).found()
    known = TensorNames(live)
    if len(tops) < 2:
        root = next((root.label for root in graph.roots if root.label), "the root")
        named = either('--by "a, b"', 'by="a, b"')
        raise RootError(
            f"{root} is one term: no sum of several tensors is at the top of its graph",
            f"name tensors on the way, {named}, or ask {option('by', 'sample')}",
        )
    groups = [[top] for top in tops]
    if len(tops) > MOST_TOLD_APART:
        # What a loop adds up at one line is one term, and so is all that is then still too much.
        lines: dict[object, list[Place]] = defaultdict(list)
        for top in tops:
            origin = graph.nodes[top[0]].origin
            # Where no lines are known, what is called alike.
            lines[known.of(top).partition(" #")[0] if origin is None else origin].append(top)
        groups = [*lines.values()]
    names = [f"{known.of(one[0])} ×{len(one):,}" if one[1:] else known.of(one[0]) for one in groups]
    if len(groups) > MOST_COMPARED:
        left = [*itertools.chain(*groups[MOST_COMPARED - 1 :])]
        groups[MOST_COMPARED - 1 :] = [left]
        names[MOST_COMPARED - 1 :] = [count(len(left), "further term")]
    pieces = [
        SplitPiece(
            name,
            tuple(dict.fromkeys(node for node, _ in group)),
            value=None if group[1:] else _value(graph, *group[0]),
        )
        for name, group in zip(_told_apart(names), groups, strict=True)
    ]
    places = {place: [number] for number, group in enumerate(groups) for place in group}
    return Plan(pieces, places)


def _of_names(live: LiveGraph, names: Sequence[str]) -> Plan:
    graph = live.probe.graph
    if len(names) >= MOST_COMPARED:  # besides, there may be a rest
        raise RootError(
            f"{len(names)} tensors are named; {MOST_COMPARED - 1} at most are told apart",
            "name fewer: all that goes through no named one is told as the rest",
        )
    summands = Summands(graph)
    summands.found()
    pieces, places = [], {}
    for position, name in enumerate(names):
        place = named_place(name, live)
        places[place] = [position]
        value = _value(graph, *place) if place in summands.added else None
        pieces.append(SplitPiece(name, (place[0],), value=value))
    if len(places) < len(names):
        raise RootError("two of the names are of one tensor", "leave one of them out")
    return Plan(pieces, places)


def _told_apart(names: Sequence[str]) -> Iterator[str]:
    """The names, those that are several times there with numbers behind them."""
    for at, name in enumerate(names):
        yield name if names.count(name) == 1 else f"{name} #{names[: at + 1].count(name)}"


def _value(graph: Graph, node: int, output: int) -> Number | None:
    info = graph.nodes[node].output(output)
    values = None if info is None else info.values
    return values[0] if values is not None and len(values) == 1 else None


# ---------------------------------------------------------------- rows, and elements


def by_sample(live: LiveGraph, names: Sequence[str]) -> Plan:
    """The rows of the tensors that the loss reduces, or of one that is named.

    Raises:
        RootError: none has rows.
    """
    graph = live.probe.graph
    found = [named_place(name, live) for name in names] or [*_reduced(graph)]
    sizes = Counter(_shape(graph, place)[:1] for place in found)
    ((size, _),) = sizes.most_common(1) or [((), 0)]
    if not size:
        none = "no rows of samples are seen where the loss is made"
        what = f"{names[0]} has no rows" if names else none
        raise RootError(what, f"name one whose rows are samples: {option('by', 'sample:NAME')}")
    places = [place for place in found if _shape(graph, place)[:1] == size]
    known = TensorNames(live)
    pieces = [SplitPiece(str(row), index=(row,)) for row in range(size[0])]
    rows = tuple(dict.fromkeys(map(known.of, places)))
    every = range(size[0])
    return Plan(pieces, dict.fromkeys(places, every), rows=rows, total=size[0])


def row_alone(gradient: torch.Tensor, row: int, dim: int = 0) -> torch.Tensor:
    """The gradient at one index; zeros elsewhere."""
    alone = torch.zeros_like(gradient, memory_format=torch.contiguous_format)
    alone.select(dim, row).copy_(gradient.select(dim, row))
    return alone


def by_output(live: LiveGraph, most: int) -> Plan:
    """The first elements of the root.

    Raises:
        RootError: there are several roots.
    """
    if len(live.roots) != 1 or not isinstance(live.roots[0], torch.Tensor):
        raise RootError(
            "outputs are the elements of one root, and backward starts otherwise",
            f"choose it with {option('root', 'NAME')}",
        )
    (root,) = live.probe.graph.roots
    place = (root.node, root.output)
    shape = _shape(live.probe.graph, place)
    total = math.prod(shape)
    first = live.roots[0].detach().reshape(-1)[:most]
    values = [] if first.is_complex() else first.double().tolist()
    pieces = [
        SplitPiece(str([*index]), (root.node,), index, number(value))
        for index, value in zip(itertools.product(*map(range, shape)), values, strict=False)
    ]
    if not pieces:
        raise RootError("the root has no real elements", "there is no row to ask for")
    return Plan(pieces, {place: range(len(pieces))}, _element, total=total)


def _element(gradient: torch.Tensor, element: int) -> torch.Tensor:
    return row_alone(gradient.reshape(-1), element).view(gradient.shape)


# ---------------------------------------------------------------- which tensors have rows


def _reduced(graph: Graph) -> Iterator[Place]:
    """The tensors of which a loss makes numbers, but for those made of one parameter alone."""
    known = Summands(graph)
    waiting = deque((root.node, root.output) for root in graph.roots)
    seen = set(waiting)
    while waiting:
        place = waiting.popleft()
        if math.prod(_shape(graph, place)) > 1 and not known.is_joined(place[0]):
            if not is_of_parameters(graph, known, place):
                yield _parted(graph, known, place)
            continue
        under = [one for one in known.under(place[0]) if one not in seen]
        seen.update(under)
        waiting.extend(under)


def is_of_parameters(
    graph: Graph, known: Summands, place: Place, *, any_shape: bool = False
) -> bool:
    """Whether a tensor is a parameter, or made of hardly more than one or two, of their shape if
    not of any."""
    below, waiting, leaves = {place[0]}, [place[0]], []
    for node in waiting:
        if graph.nodes[node].kind == "leaf":
            leaves.append(_shape(graph, (node, 0)))
        under = {one for one, _ in known.under(node)} - below
        below |= under
        waiting.extend(sorted(under))
        if len(leaves) > 2 or len(below) > FAR:
            return False
    shape = _shape(graph, place)
    return any_shape or shape in leaves or shape[::-1] in leaves


def _parted(graph: Graph, known: Summands, place: Place) -> Place:
    """The tensor with a name whose rows these are, or what that was flattened from: ``logits`` of
    ``F.cross_entropy(logits.flatten(0, 1), y)``."""
    at, size = place, _shape(graph, place)[0]
    for _ in range(FAR):
        under = known.under(at[0])
        node = graph.nodes[at[0]]
        if len(under) != 1 or node.kind != "op" or node.short_op not in _ROWWISE:
            break
        (at,) = under
        shape = _shape(graph, at)
        if shape and 1 < shape[0] < size and size in itertools.accumulate(shape, operator.mul):
            place, size = at, shape[0]
        if not shape or shape[0] != size:
            break
        if graph.nodes[at[0]].variable:
            place = at
    return place


def _shape(graph: Graph, place: Place) -> tuple[int, ...]:
    info = graph.nodes[place[0]].output(place[1])
    return () if info is None else info.shape
