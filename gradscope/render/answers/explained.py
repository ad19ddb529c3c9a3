"""What all parts of an explanation have in common: its report with indices, and how tensors,
gradients and nodes are written in it.

Texts are made visible here; must not know in which order they are put."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from gradscope.escaping import visible
from gradscope.model.explanation import Amount, ChainStep, Explanation, Local, Term
from gradscope.model.plain import Number, TensorInfo
from gradscope.model.report import BackwardPass, Edge, GradientInfo, Leaf, Node, Report
from gradscope.notation.operands import bracketed
from gradscope.render.answers.answer import GraphAnswer, held
from gradscope.render.drawing.scene import NOT_THERE, Scene, state_word
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.text import cells, shorten, wrapped
from gradscope.simplify.partition import label_of
from gradscope.words import either, joined, one_line

LABEL = 10
"""Cells of the words at the beginning of a line, such as ``upstream``."""

INDENT = 3

FEW = 9
"""Tensors of at most this many elements are written out; a 3 × 3 matrix still reads well."""

MOST_NUMBERS = 16
"""A Jacobian with more is not written out."""

BAD = "bold #d0327a"

SINGLE = 1e-4
HALF = {"float16": 1e-2, "bfloat16": 5e-2}
"""What rounding leaves of a sum of products, relative, in float32 and in half precision."""

UNNAMED = "the root"
"""A root that no variable holds."""


@dataclass(frozen=True)
class Goal:
    """A tensor that is explained: its name, its sign, the line that made it, and what arrived.

    ``leaf`` is its index among the leaves, None where it is none."""

    name: str
    sign: str
    node: int
    output: int
    tensor: TensorInfo
    origin: int | None
    leaf: int | None
    gradient: GradientInfo | None


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
        self.leaving: list[list[int]] = [[] for _ in self.graph.nodes]
        self.arriving: list[list[int]] = [[] for _ in self.graph.nodes]
        for number, edge in enumerate(self.graph.edges):
            self.leaving[edge.source].append(number)
            self.arriving[edge.target].append(number)

    # ------------------------------------------------------------------ lookups

    @cached_property
    def steps(self) -> dict[int, ChainStep]:
        """The steps by their nodes."""
        return {step.node: step for step in self.answer.steps}

    @cached_property
    def locals(self) -> dict[tuple[int, int], Local]:
        """The local derivatives by edge and output."""
        return {(one.edge, one.output): one for step in self.answer.steps for one in step.locals}

    @property
    def ends(self) -> list[Goal]:
        """The tensors that are explained."""
        leaves = self.answer.leaves if self.answer.tensor is None else (None,)
        return [self.end(leaf) for leaf in leaves]

    def end(self, leaf: int | None) -> Goal:
        """A leaf by its index, or the tensor that is explained instead."""
        made = self.answer.tensor
        if leaf is None and made is not None:
            arrived = self.upstream(made.node, made.output)
            node = self.graph.nodes[made.node]
            name, sign = visible(made.name), self.glyphs.op
            place = (made.node, made.output)
            return Goal(name, sign, *place, made.info, node.origin, None, arrived)
        record = self.graph.leaves[leaf or 0]
        arrived = self.scene.gradients.leaf(leaf or 0) if self.scene.gradients else None
        name, sign = self.name(record.node), self.glyphs.leaf
        return Goal(name, sign, record.node, 0, record.tensor, record.origin, leaf, arrived)

    @cached_property
    def leading(self) -> set[int]:
        """The edges of all ways from the roots to the tensors that are explained."""
        return self.graph.edges_to({end.node: end.output for end in self.ends})

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
    def is_hooked(self) -> bool:
        """Whether hooks of the program replaced a gradient on its way."""
        return self.backward is not None and bool(self.backward.altered)

    def edge(self, number: int) -> Edge:
        """An edge of the graph."""
        return self.graph.edges[number]

    def on_edge(self, number: int) -> GradientInfo | None:
        """The gradient that flowed along an edge, None where no pass was made."""
        return self.backward.on_edge(number) if self.backward else None

    def upstream(self, node: int, output: int) -> GradientInfo | None:
        """The gradient that a node received for an output."""
        return self.backward.at(node, output) if self.backward else None

    def seeds(self, node: int, output: int) -> list[GradientInfo]:
        """The gradients that were fed in at a place."""
        if self.backward is None:
            return []
        return [
            self.backward.gradients[entry]
            for root, entry in zip(self.graph.roots, self.backward.seeds, strict=True)
            if (root.node, root.output) == (node, output)
        ]

    # ------------------------------------------------------------------ names

    def name(self, node: int) -> str:
        """What is explained, and a leaf, by its name; another node by its number: ``#3``."""
        leaf, made = self.leaf_at.get(node), self.answer.tensor
        if made is not None and made.node == node:
            return visible(made.name)
        return visible(leaf.names[0]) if leaf is not None and leaf.names else f"#{node}"

    def title(self, node: Node) -> str:
        """``Mul`` of ``MulBackward0``; a custom Function's class; what is opaque is marked."""
        return self.scene.called(node) + " · opaque" * (node.kind == "opaque")

    def expression(self, node: Node) -> str:
        """What the program wrote: ``c = a + b``."""
        return visible(one_line(label_of(self.graph, node)))

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
        shape = self.shape(root.node, root.output) or ()
        label = symbol(self.root_label(term.root))
        return f"{label}[{index_of(term.element, shape)}]" if shape else label

    # ------------------------------------------------------------------ numbers

    def shape(self, node: int, output: int) -> tuple[int, ...] | None:
        """The shape of a node's output, where it is known."""
        tensor = self.scene.tensor(node, output)
        return None if tensor is None else tensor.shape

    def values(
        self, values: Sequence[Number] | None, shape: tuple[int, ...] | None, dtype: str = "float32"
    ) -> str:
        """Small values in brackets, "" where they are not known or not few."""
        if values is None or numbers.element_count(values, dtype) > FEW:
            return ""
        sizes = shape if shape is not None else (len(values),)
        return numbers.tensor(values, sizes, dtype)

    def tensor(self, info: TensorInfo | None) -> str:
        """A forward tensor: its values where they are few."""
        return self.values(info.values, info.shape, info.dtype) if info else ""

    def gradient(self, info: GradientInfo | None, shape: tuple[int, ...] | None) -> str:
        """A gradient: its values where they are few, else its norm, else its state in a word."""
        if info is None:
            return "?"
        found = self.values(info.values, shape, info.dtype)
        if found:
            return found
        word = state_word(info, self.glyphs.silent, self.glyphs.bad)
        if word or info.norm is None:
            return word or (NOT_THERE if info.released else "?")
        return f"‖{numbers.number(info.norm)}‖"

    def amount(self, amount: Amount, tensor: TensorInfo) -> str:
        """The same of an amount, in the shape and dtype of this tensor."""
        found = self.values(amount.values, tensor.shape, tensor.dtype)
        return found or f"‖{numbers.number(amount.norm)}‖"

    def local(self, local: Local, is_row: bool = False) -> str:
        """A Jacobian: one number, one for each element, in a row if that is asked, or a matrix."""
        edge = self.edge(local.edge)
        if not local.diagonal and local.shape[0] > 1:
            return numbers.tensor(local.values, local.shape, "float32")
        if local.diagonal and len(set(local.values)) == 1:
            return numbers.element(local.values[0])
        return self.values(local.values, None if is_row else self.shape(edge.target, edge.output))

    def product(
        self, info: GradientInfo, shape: tuple[int, ...] | None, along: Sequence[Local]
    ) -> str:
        """A gradient times Jacobians: ``×`` one number or element by element, ``@`` a matrix, where
        everything else stands as one row; "" where any has many numbers."""
        is_matrix = [not (one.diagonal or one.shape[0] == 1 or is_identity(one)) for one in along]
        is_row = any(is_matrix)
        parts = [self.values(info.values, None if is_row and shape else shape, info.dtype)]
        texts = (
            self.local(one, is_row) if matrix or not is_identity(one) else "1"
            for one, matrix in zip(along, is_matrix, strict=True)
        )
        factors = list(zip(is_matrix, texts, strict=True))
        if not all((*parts, *(text for _, text in factors))):
            return ""
        if any(len(one.values) > MOST_NUMBERS for one in along):
            return ""
        for (matrix, text), alike in groupby(factors):
            times = len(list(alike))
            is_power = times > 2 and not matrix and text != "1" and not self.everything
            shown = [f"{bracketed(text)}^{times}"] if is_power else [text] * times
            parts += (f"{'@' if matrix else '×'} {one}" for one in shown)
        return " ".join(parts)

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


def symbol(label: str) -> str:
    """What a root is called in a formula."""
    return label.removeprefix("the ") if label == UNNAMED else label


def index_of(place: int, shape: tuple[int, ...]) -> str:
    """``0,1``: the indices of an element by its place in row-major order."""
    found = []
    for size in reversed(shape):
        place, index = divmod(place, max(size, 1))
        found.append(str(index))
    return ",".join(reversed(found))


def is_identity(local: Local) -> bool:
    """Whether an operand gets the same numbers, though maybe in another shape."""
    rows, columns = local.shape
    places = enumerate(map(float, local.values))
    return rows == columns and (
        not local.diagonal and all(value == (place % (rows + 1) == 0) for place, value in places)
    )


def total(parts: Sequence[Sequence[Number]]) -> list[float] | None:
    """Rows of numbers added up, column by column; None where they are not equally long, as the
    gradients of one tensor may be that were not all reduced to its shape."""
    if len({len(part) for part in parts}) > 1:
        return None
    return [sum(map(float, column)) for column in zip(*parts, strict=True)]


def agree(found: Sequence[float], other: Sequence[Number], precision: float = SINGLE) -> bool:
    """Whether two rows of numbers are the same within this precision, relative."""
    scale = max((abs(value) for value in found if math.isfinite(value)), default=0.0)
    return len(found) == len(other) and all(
        math.isclose(a, b, rel_tol=precision, abs_tol=precision * scale + 1e-12)
        or (math.isnan(a) and math.isnan(b))
        for a, b in zip(found, map(float, other), strict=True)
    )
