"""What all parts of an explanation have in common: its report with indices, and how tensors,
gradients and nodes are written in it.

Texts are made visible here; must not know in which order they are put."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from operator import mul
from typing import NamedTuple

from gradscope.escaping import visible
from gradscope.model.explanation import End, Explanation, Local, Term
from gradscope.model.plain import Number, TensorInfo
from gradscope.model.report import BackwardPass, Edge, GradientInfo, Leaf, Report
from gradscope.notation.operands import bracketed, names_in
from gradscope.render.answers.answer import GraphAnswer, held
from gradscope.render.drawing.scene import NOT_THERE, Scene, state_word
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.text import cells, shorten, wrapped
from gradscope.simplify.view import edges_into, edges_out
from gradscope.words import either, joined

LABEL = 10
"""Cells of the words at the beginning of a line, such as ``upstream``."""

INDENT = 3

FEW = 9
"""Tensors of at most this many elements are written out; a 3 × 3 matrix still reads well."""

MOST_NUMBERS = 16
"""A Jacobian with more is not written out."""

MOST_IN_FULL = 16
"""More steps than these have a row each."""

SINGLE = 1e-4
HALF = {"float16": 1e-2, "bfloat16": 5e-2}
"""What rounding leaves of a sum of products, relative, in float32 and in half precision."""

UNNAMED = "the root"
"""A root that no variable holds."""


class WrittenGradient(NamedTuple):
    """A gradient, the shape of its tensor where that is known, and what is written for it."""

    info: GradientInfo
    shape: tuple[int, ...] | None
    text: str


class ChainProduct(NamedTuple):
    """A gradient times Jacobians: its numbers, none where one of these is not known; and the
    factors in writing, "" where any has many numbers."""

    row: Sequence[float] = ()
    text: str = ""


class Explained(GraphAnswer):
    """A report with an explanation, and how what is in it is written.

    Raises:
        ReportError: when it holds none.
    """

    def __init__(self, report: Report, options: Options) -> None:
        super().__init__(report, options)
        self.answer: Explanation = held(
            report.explanation, either("gradscope explain", "gradscope.explain(root)")
        )
        self.scene = Scene(report, options)
        self.backward: BackwardPass | None = self.scene.backward
        self.leaf_at: dict[int, Leaf] = {leaf.node: leaf for leaf in self.graph.leaves}
        self.leaving = edges_out(self.graph)
        self.arriving = edges_into(self.graph)

    # ------------------------------------------------------------------ lookups

    @cached_property
    def locals(self) -> dict[tuple[int, int], Local]:
        """The local derivatives by edge and output."""
        return {(one.edge, one.output): one for step in self.answer.steps for one in step.locals}

    @cached_property
    def leading(self) -> set[int]:
        """The edges of all ways from the roots to the tensors that are explained; of one node all
        that leave it."""
        if self.answer.node is not None:
            return {*self.leaving[self.answer.node]}
        return self.graph.edges_to({end.node: end.output for end in self.answer.ends})

    @cached_property
    def precision(self) -> float:
        """What the rounding of the narrowest gradient leaves."""
        gradients = self.backward.gradients if self.backward else ()
        return max((HALF.get(dtype, SINGLE) for dtype in {g.dtype for g in gradients}), default=0)

    @property
    def everything(self) -> bool:
        """Whether nothing is to be folded or left out."""
        return self.answer.everything or self.options.folding.all

    @property
    def is_long(self) -> bool:
        """Whether there are so many steps that each has a row."""
        return len(self.answer.steps) > MOST_IN_FULL and not self.everything

    def edge(self, number: int) -> Edge:
        """An edge of the graph."""
        return self.graph.edges[number]

    def behind(self, edge: int) -> TensorInfo | None:
        """The forward tensor that an edge leads to, where it is known."""
        place = self.edge(edge)
        return self.graph.nodes[place.target].output(place.output)

    def on_edge(self, edge: int) -> WrittenGradient | None:
        """The gradient that flowed along an edge, None where no pass was made."""
        sent = self.backward.on_edge(edge) if self.backward else None
        return self.gradient(sent, self.behind(edge)) if sent else None

    # ------------------------------------------------------------------ names

    @cached_property
    def names_of_program(self) -> set[str]:
        """The names that the program has in what is explained, and for its leaves."""
        texts = [f"{one.variable} {one.expression}" for one in self.graph.origins]
        texts += [leaf.name for leaf in self.graph.leaves]
        return names_in([" ".join(texts).replace(".", " ")])

    @cached_property
    def weight(self) -> str:
        """The letter for the weights of the root's elements: v, or another that nothing of the
        program's has; "" where one number is given 1, and there is nothing to weigh."""
        weights = self.answer.weights
        if weights is None or [weights.total, *(float(t.weight) for t in weights.terms)] == [1, 1]:
            return ""
        return next((one for one in "vwghkmn" if one not in self.names_of_program), "v")

    def name(self, node: int) -> str:
        """What is explained, and a leaf, by its name; another node by its number: ``#3``."""
        ends = {end.node: end.name for end in self.answer.ends if end.leaf is None}
        leaf = self.leaf_at.get(node)
        return visible(ends.get(node) or (leaf.names[0] if leaf and leaf.names else f"#{node}"))

    def to(self, edge: int) -> str:
        """Where an edge leads; with the number of the operand, ``[1] a``, where that alone tells
        two of them apart."""
        place = self.edge(edge)
        target = Counter(self.edge(one).target for one in self.leaving[place.source])
        return f"[{place.slot}] " * (target[place.target] > 1) + self.name(place.target)

    def root_label(self, root: int) -> str:
        """What the program calls a root."""
        record = self.graph.roots[root]
        variable = record.label or self.graph.nodes[record.node].variable
        # A derivative as a root, ∂y/∂x, would run into the signs around it.
        return bracketed(visible(variable)) if variable else UNNAMED

    @property
    def roots(self) -> str:
        """``y and h``: what backward starts from."""
        return joined(map(self.root_label, range(len(self.graph.roots))))

    def element(self, term: Term) -> str:
        """``y[2]``, ``z[0,1]``, or the root itself where it is one number."""
        root = self.graph.roots[term.root]
        made = self.graph.nodes[root.node].output(root.output)
        index = index_of(term.element, made.shape if made else ())
        return symbol(self.root_label(term.root)) + index

    # ------------------------------------------------------------------ numbers

    def tensor(self, end: End) -> TensorInfo:
        """A tensor that is explained."""
        leaves, nodes = self.graph.leaves, self.graph.nodes
        made = nodes[end.node].output(end.output) if end.leaf is None else None
        return made or leaves[end.leaf or 0].tensor

    def values(
        self, values: Sequence[Number] | None, shape: tuple[int, ...] | None, dtype: str = "float32"
    ) -> str:
        """Small values in brackets, "" where they are not known or not few."""
        if values is None or numbers.element_count(values, dtype) > FEW:
            return ""
        sizes = shape if shape is not None else (len(values),)
        return numbers.tensor(values, sizes, dtype)

    def value(self, info: TensorInfo | None) -> str:
        """A forward tensor: its values where they are few."""
        return self.values(info.values, info.shape, info.dtype) if info else ""

    def gradient(self, info: GradientInfo, tensor: TensorInfo | None) -> WrittenGradient:
        """A gradient of a tensor: its values where they are few, else its norm, else its state in a
        word."""
        shape = None if tensor is None else tensor.shape
        text = self.values(info.values, shape, info.dtype)
        text = text or state_word(info, self.glyphs.silent, self.glyphs.bad)
        if not text and info.norm is not None:
            text = f"‖{numbers.number(info.norm)}‖"
        return WrittenGradient(info, shape, text or (NOT_THERE if info.released else "?"))

    def local(self, local: Local, is_row: bool = False) -> str:
        """A Jacobian: one number, one for each element, in a row if that is asked, or a matrix."""
        if not local.diagonal and local.shape[0] > 1:
            return numbers.tensor(local.values, local.shape, "float32")
        if local.diagonal and len(set(local.values)) == 1:
            return numbers.element(local.values[0])
        behind = None if is_row else self.behind(local.edge)
        return self.values(local.values, behind.shape if behind else None)

    def product(self, given: WrittenGradient, along: Sequence[Local | None]) -> ChainProduct:
        """A gradient times Jacobians: ``×`` one number or element by element, ``@`` a matrix, where
        everything else stands as one row."""
        (info, shape, _), row = given, [*map(float, given.info.values or ())]
        for one in along:
            # A gradient that was not yet reduced to its tensor's shape has more numbers.
            if one is None or len(row) != one.shape[0]:
                return ChainProduct()
            row = _multiplied(row, one)
        known = [one for one in along if one is not None]
        matrices = [not (one.diagonal or one.shape[0] == 1 or is_identity(one)) for one in known]
        is_row = any(matrices)
        texts = ["1" if is_identity(one) else self.local(one, is_row) for one in known]
        texts.insert(0, self.values(info.values, None if is_row and shape else shape, info.dtype))
        if not all(texts) or any(len(one.values) > MOST_NUMBERS for one in known):
            return ChainProduct(row)
        signs = ["", *(" @ " if matrix else " × " for matrix in matrices)]
        return ChainProduct(row, "".join(chain.from_iterable(zip(signs, texts, strict=True))))

    # ------------------------------------------------------------------ lines

    def headline(self, text: str, place: str) -> str:
        """A title, and at the end of the line the place in the program."""
        text = self.glyphs.text(text)
        room = self.options.width - cells(place) - 2 * bool(place)
        text = shorten(text, max(room, 20), self.glyphs.ellipsis)
        gap = " " * max(room - cells(text), 0) + "  " if place else ""
        return self.paint(text, "bold") + gap + self.paint(place, "dim")

    def entry(self, label: str, text: str, style: str = "") -> Iterator[str]:
        """A label and a text, wrapped below its own beginning."""
        lead = " " * INDENT + label.ljust(LABEL)
        first = self.paint(self.glyphs.text(lead), "dim")
        room = self.options.width - cells(lead)
        for number, part in enumerate(wrapped(self.glyphs.text(text), room)):
            yield (first if not number else " " * cells(lead)) + self.paint(part, style)

    def beside(self, label: str, *texts: str) -> Iterator[str]:
        """A label and texts, side by side as far as they fit a line."""
        gap, room = "    ", self.options.width - INDENT - LABEL
        lines: list[str] = []
        for text in filter(None, texts):
            if lines and cells(lines[-1]) + len(gap) + cells(text) <= room:
                lines[-1] += gap + text
            else:
                lines.append(text)
        for number, line in enumerate(lines):
            yield from self.entry("" if number else label, line)


def symbol(label: str) -> str:
    """What a root is called in a formula."""
    return label.removeprefix("the ") if label == UNNAMED else label


def index_of(place: int, shape: tuple[int, ...]) -> str:
    """``[0,1]``: the indices of an element by its place in row-major order; "" of a single one."""
    found: list[str] = []
    for size in reversed(shape):
        place, index = divmod(place, max(size, 1))
        found.insert(0, str(index))
    return f"[{','.join(found)}]" if shape else ""


def _multiplied(upstream: Sequence[float], local: Local) -> list[float]:
    """Upstream gradient times Jacobian: element by element, or row vector times matrix."""
    values, columns = [*map(float, local.values)], local.shape[1]
    if local.diagonal:
        return [*map(mul, upstream, values)]
    return [sum(map(mul, upstream, values[column::columns])) for column in range(columns)]


def is_identity(local: Local) -> bool:
    """Whether an operand gets the same numbers, though maybe in another shape."""
    rows, columns = local.shape
    places = enumerate(map(float, local.values))
    return rows == columns and (
        not local.diagonal and all(value == (place % (rows + 1) == 0) for place, value in places)
    )


def total(parts: Sequence[Sequence[Number] | None]) -> list[float] | None:
    """Rows of numbers added up, column by column; None where one is not known, or they are not
    equally long, as the gradients of one tensor may be that were not all reduced to its shape."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({*map(len, known)}) != 1:
        return None
    return [sum(map(float, column)) for column in zip(*known, strict=True)]


def agree(found: Sequence[float], other: Sequence[Number], precision: float = SINGLE) -> bool:
    """Whether two rows of numbers are the same within this precision, relative."""
    scale = max((abs(value) for value in found if math.isfinite(value)), default=0.0)
    return len(found) == len(other) and all(
        math.isclose(a, b, rel_tol=precision, abs_tol=precision * scale + 1e-12)
        or (math.isnan(a) and math.isnan(b))
        for a, b in zip(found, map(float, other), strict=True)
    )
