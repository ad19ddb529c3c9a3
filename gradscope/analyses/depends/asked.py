"""Which two tensors are meant, and which axis of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gradscope.analyses.split.pieces import TensorNames, named_place
from gradscope.autograd.saved import slots
from gradscope.autograd.tensors import has_storage, requires_grad, storage_of
from gradscope.errors import RootError
from gradscope.graphing.roots import named_tensor
from gradscope.graphing.study import LiveGraph
from gradscope.model.dependence import AxisSide
from gradscope.model.plain import RAGGED
from gradscope.model.request import DependsStudy
from gradscope.words import either, listed, one_line, option


def sides(live: LiveGraph, asked: DependsStudy) -> tuple[AxisSide, AxisSide]:
    """The two tensors, with their axes.

    Raises:
        RootError: one of them has no gradient history, the second is made of the first, or the
            axes do not fit.
    """
    of, on = _side(live, asked.of), _side(live, asked.on)
    if (of.node, of.output) == (on.node, on.output):
        what = f"{of.name} and {on.name} are one tensor"
        raise RootError(what, "name two, the first made of the second")
    if not on.shape:
        raise RootError(f"{on.name} is one number, without an axis", "name a tensor that has one")
    graph = live.probe.graph
    if any(graph.edges[one].source == on.node for one in graph.edges_to({of.node: of.output})):
        other = either(f"--of {on.name} --on {of.name}", f"depends({on.name}, {of.name!r})")
        what = f"{of.name} cannot depend on {on.name}, which is made of it"
        raise RootError(what, f"ask the other way round: {other}")
    first, second = _axes(of, on, asked.axis)
    for side, axis in ((of, first), (on, second)):
        if axis is not None and not -len(side.shape) <= axis < len(side.shape):
            raise RootError(f"{side.name} {[*side.shape]} has no axis {axis}", _choose())
    of = replace(of, axis=None if first is None else first % len(of.shape))
    return of, replace(on, axis=second % len(on.shape))


def _side(live: LiveGraph, name: str | None) -> AxisSide:
    """A tensor that is named, or the root."""
    graph = live.probe.graph
    tensor = None if name is None else named_tensor(name, live.scopes)
    if tensor is not None and not requires_grad(tensor):
        made = _made_of(live, storage_of(tensor)) if has_storage(tensor) else ()
        listing = listed(made)
        hint = f"ask at what is made of it: {listing}" if listing else "name one on the way to it"
        may = tensor.is_floating_point() or tensor.is_complex()
        raise RootError(
            f"{name} carries no gradient history, so no gradient comes to it",
            f"{hint}; or let the program call {name}.requires_grad_()" if may else hint,
        )
    if name is None and len(graph.roots) != 1:
        what = f"backward starts from {len(graph.roots)} tensors at once"
        raise RootError(what, f"name the one that is meant: {option('of', 'NAME')}")
    root = graph.roots[0]
    node, output = (root.node, root.output) if name is None else named_place(live, name)
    name = one_line(name or root.label) or "root"
    info = graph.nodes[node].output(output)
    if info is None or RAGGED in info.shape or not math.prod(info.shape):
        raise RootError(f"{name} has no elements along an axis", "name another tensor")
    return AxisSide(name, node, output, info.shape)


def _made_of(live: LiveGraph, storage: int) -> Iterator[str]:
    """The tensors made by nodes that saved this memory, but for those made of one of them."""
    graph, known = live.probe.graph, TensorNames(live)
    above: set[int] = set()
    for number in reversed(range(len(graph.nodes))):
        saved = (slot.content for slot in slots(live.probe.walked.nodes[number]))
        kept = (one for one in saved if one is not None and has_storage(one))
        if number not in above and storage in map(storage_of, kept):
            yield f'"#{number}" ({known.of((number, 0))})'
            above |= {graph.edges[edge].source for edge in graph.edges_to({number: 0})}


def _axes(of: AxisSide, on: AxisSide, given: Sequence[int]) -> tuple[int | None, int]:
    """The axes that are asked for, else the first of one size in both; of one element none."""
    is_one = math.prod(of.shape) == 1
    if given:
        return None if is_one else given[0], given[-1]
    long = [axis for axis, size in enumerate(on.shape) if size > 1]
    if is_one:
        return None, next(iter(long), 0)
    pairs = [
        (one, two) for one, size in enumerate(of.shape) for two in long if size == on.shape[two]
    ]
    if not pairs:
        shapes = f"{of.name} {[*of.shape]} and {on.name} {[*on.shape]}"
        raise RootError(f"{shapes} have no axis of one size", _choose())
    return min(pairs, key=lambda pair: pair[0] != pair[1])


def _choose() -> str:
    return f"choose one of each: {either('--axis 0,1', 'axis=(0, 1)')}"
