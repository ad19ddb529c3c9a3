"""A term of a loss that is added twice with the same factor, once by itself and once in a sum that
holds it already; and a term that is multiplied twice by the same weight.

Looked for among the numbers at the top of a graph: sums, and products with constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.analyses.doctor.ancestry import MAX_TERMS, kinds
from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.analyses.doctor.oddities import MAX_PLACES
from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.analyses.training.mean_losses import number_in
from gradscope.autograd import saved
from gradscope.autograd.nodes import is_leaf, is_nested, outputs_of, torch_name
from gradscope.autograd.tensors import grad_fn_of, requires_grad
from gradscope.recording.names import value_in_frame
from gradscope.recording.torch_call import TorchCall

NEAR = 1e-6
"""Two factors are the same up to this."""

_ADDING, _PRODUCTS = kinds("Add Sub"), kinds("Mul Div")
_PASSING = kinds("Neg Mean Sum ToCopy Squeeze Unsqueeze View Clone")
_SQUARED = ("t", "temp", "temperature", "tau")
"""What a loss is multiplied by twice on purpose, as in distillation."""


class _Factor(NamedTuple):
    """A number that something is multiplied by, and what it may be called."""

    number: float
    names: frozenset[str]


_Way = list[tuple[LiveNode, float]]
"""The nodes from a term up to the root, each with the factor that it gives to what comes below."""


class DoubledTerms(OddityFinder):
    """Such terms, told by the place that adds or multiplies them the second time."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._factors: dict[int, _Factor] = {}

    def note(self, call: TorchCall) -> None:
        """Look at one call: a product of a number with history and one without."""
        if call.function not in ("mul", "rmul") or not call.in_graph or len(call.args) != 2:
            return
        given = [one for one in call.args if not _learns(one)]
        number = _number_of(given[0]) if len(given) == 1 and call.results[0].dim() == 0 else None
        site = call.places.site(call.place)
        if number is None or site is None or call.user is None or number in (0.0, 1.0, -1.0):
            return
        values = {
            name: value_in_frame(name, call.user) for name in self._recorder.sources.operands(site)
        }
        # Of numbers: `self` and `self.config` are in all that they hold.
        names = (
            name.rpartition(".")[2].lower()
            for name, value in values.items()
            if not _learns(value) and _number_of(value) is not None
        )
        if call.place in self._factors or len(self._factors) < MAX_PLACES:
            self._factors[call.place] = _Factor(number, frozenset(names).difference(_SQUARED))

    def look(self, watch: FullCapture) -> None:
        """A call is about to be made that is looked at in full."""
        start = watch.call.roots[0]
        root = grad_fn_of(start) if isinstance(start, torch.Tensor) else None
        if root is None or not watch.call.accumulates or not _is_number(root):
            return
        above: dict[LiveNode, _Way] = {root: []}
        pending = [root]
        while pending and len(above) < MAX_TERMS:
            node = pending.pop()
            for target, factor in _summands(node):
                pending += [target] if target not in above else []
                above.setdefault(target, []).append((node, factor))
        for node, parents in above.items():
            ways = [way for parent in parents if (way := _way(parent, above))]
            if len(ways) == len(parents) == 2:
                self._compare(node, *ways)
            if torch_name(node).startswith(_PRODUCTS[:1]) and len(ways) == 1:
                self._note_weight(node, ways[0])

    def _compare(self, term: LiveNode, one: _Way, other: _Way) -> None:
        """A term is reached by two ways: is it added to a sum that it is in?"""
        factor, first, second = _product(one), _first(_ADDING, one), _first(_ADDING, other)
        if factor <= 0 or abs(factor - _product(other)) > NEAR * factor:
            return
        for outer, inner, way in ((first, second, other), (second, first, one)):
            is_around = outer is not inner and any(node is outer for node, _ in way)
            if outer is not None and inner is not None and is_around:
                self._tell_of("term twice", outer, inner, self._text(term))

    def _note_weight(self, node: LiveNode, way: _Way) -> None:
        """A term is multiplied by a number: once more by the same, before it is added?"""
        outer, before = _first(_PRODUCTS[:1], way), _first(_ADDING, way)
        if outer is None or (before is not None and _index(way, before) < _index(way, outer)):
            return
        factors = [self._factors.get(self._place(one)) for one in (outer, node)]
        if factors[0] and factors[1] and factors[0].number == factors[1].number:
            names = factors[0].names & factors[1].names
            if names:
                self._tell_of("weight twice", outer, node, min(names))

    def _tell_of(self, kind: Any, outer: LiveNode, inner: LiveNode, name: str) -> None:
        places = self._place(outer), self._place(inner)
        lines = [self._recorder.places.line(place) for place in places]
        # One line that names it twice says what it means.
        if None not in lines and lines[0] != lines[1]:
            self._tell(kind, places[0], name=name, other=places[1])

    def _place(self, node: LiveNode) -> int:
        span = self._recorder.span_of(node._sequence_nr())
        return -1 if span is None else span.place

    def _text(self, node: LiveNode) -> str:
        site = self._recorder.places.site(self._place(node))
        return "" if site is None else self._recorder.sources.origin(site).expression


def _summands(node: LiveNode) -> Iterator[tuple[LiveNode, float]]:
    """What a node adds up, each with its factor, of which nothing is left where that is none."""
    below = [(n, target) for n, (target, _) in enumerate(node.next_functions) if target is not None]
    name = torch_name(node)
    factor: float | None = 1.0 if name.startswith((*_ADDING, *_PASSING)) else None
    if name.startswith("Neg"):
        factor = -1.0
    elif name.startswith(_PRODUCTS) and len(below) == 1:
        constant = saved.value(node, "other" if below[0][0] == 0 else "self")
        factor = number_in(constant)
        factor = 1.0 / factor if factor and name.startswith("Div") else factor
    for number, target in below if factor else ():
        alpha = float(getattr(node, "_saved_alpha", 1)) if number and len(below) > 1 else 1.0
        sign = -1.0 if number and name.startswith("Sub") else 1.0
        if factor and _is_number(target):
            yield target, factor * alpha * sign


def _way(last: tuple[LiveNode, float], above: dict[LiveNode, _Way]) -> _Way:
    """From a node's parent up to the root; nothing where there are several ways."""
    way = [last]
    while parents := above[way[-1][0]]:
        if len(parents) > 1:
            return []
        way.append(parents[0])
    return way


def _first(names: tuple[str, ...], way: _Way) -> LiveNode | None:
    """The first node of these kinds on a way."""
    return next((node for node, _ in way if torch_name(node).startswith(names)), None)


def _index(way: _Way, node: LiveNode) -> int:
    return [one for one, _ in way].index(node)


def _product(way: _Way) -> float:
    product = 1.0
    for _, factor in way:
        product *= factor
    return product


def _is_number(node: LiveNode) -> bool:
    """Whether the one result of a node is a single number."""
    outputs = outputs_of(node)
    is_one = len(outputs) == 1 and not is_leaf(node) and not is_nested(outputs[0])
    return is_one and tuple(outputs[0].shape) == ()


def _learns(one: object) -> bool:
    return isinstance(one, torch.Tensor) and requires_grad(one)


def _number_of(one: object) -> float | None:
    if isinstance(one, torch.Tensor):
        return number_in(one)
    return float(one) if isinstance(one, (int, float)) else None
