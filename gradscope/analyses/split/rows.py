"""Where a gradient is taken apart by sample, or by output: rows of tensors, elements of a root."""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter, deque
from collections.abc import Iterator, Sequence

import torch

from gradscope.analyses.explain.pull import Place
from gradscope.analyses.split.pieces import Plan, TensorNames
from gradscope.analyses.split.terms import Summands
from gradscope.errors import RootError
from gradscope.graphing.study import LiveGraph, named_place
from gradscope.model.plain import number
from gradscope.model.report import Graph
from gradscope.model.studies import SplitPiece
from gradscope.words import option

_ROWWISE = frozenset(
    ("LogSoftmax", "Softmax", "View", "UnsafeView", "Clone", "ToCopy", "Neg", "Mul", "Div")
)
"""Operations that leave each row for itself, or tell rows by two dimensions rather than one."""

FAR = 12
"""Nodes behind a loss among which its rows are looked for."""


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
