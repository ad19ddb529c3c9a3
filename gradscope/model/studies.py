"""What a study of a graph found, as plain data like the Report: what autograd keeps alive for
backward, one record a storage; the derivative of each call, and of the whole program, beside
finite differences; what each piece of a gradient brings to each leaf; and which elements of one
tensor depend on which of another, along an axis of each.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args

from msgspec import Meta

from gradscope.model.plain import Count, LeafId, NodeId, Norm, Number, OriginId, Struct
from gradscope.words import count

Holding = Literal["activation", "parameter", "buffer", "input", "attribute", "packed"]
"""Why a storage is there: made on the way; a leaf of the graph or a parameter of a module; a buffer
of a module; a tensor without history that a variable of the program holds; kept by a custom
Function as a plain attribute of its ``ctx``; packed by a saved-tensor hook of the program."""


class KeptStorage(Struct, frozen=True):
    """One storage that backward keeps alive, counted once however many tensors look into it.

    ``bytes`` is the size of the whole storage, ``used`` at most so many of them are in a tensor
    that was saved; ``shape`` and ``dtype`` are those of the largest one.
    ``missing`` are bytes of what was saved that are not there now, because the program has given
    them back; while backward runs they may be.
    ``holders`` are the nodes that saved it and the name of the slot in each, in the order in which
    the program made them.  ``name`` is what the program calls a parameter, buffer or input.
    """

    bytes: Count
    used: Count
    shape: tuple[int, ...]
    dtype: str
    device: str
    holding: Holding
    holders: Annotated[tuple[tuple[NodeId, str], ...], Meta(min_length=1)]
    name: str = ""
    missing: Count = 0


class Hidden(Struct, frozen=True):
    """A saved tensor that was not counted, and why: the hook it is behind, or its kind.

    ``slot`` is empty where torch does not tell whether the node saved anything; ``reason`` then
    says what the node is for.
    """

    node: NodeId
    slot: str
    reason: str
    recomputed: bool = False


class Memory(Struct, frozen=True):
    """Everything kept for one graph, largest first, and what could not be counted.

    ``freed`` are nodes whose saved tensors an earlier backward call had freed already.
    """

    kept: tuple[KeptStorage, ...]
    hidden: tuple[Hidden, ...] = ()
    freed: tuple[NodeId, ...] = ()

    def total(self, *holdings: Holding) -> int:
        """The bytes of all storages held in these ways."""
        return sum(one.bytes for one in self.kept if one.holding in holdings)


MEANT = re.compile(
    r"ste|straight|revers|quant|round|sign|binar|spike|surrogate|scalegrad|gradscale|grl", re.I
)
"""Names of custom Functions whose backward is made to differ from their derivative."""

Verdict = Literal[
    "wrong", "rounding", "unresolved", "kink", "meant", "random", "not checked", "right"
]
"""The worst first: the two numbers differ; they differ only by what the program's own precision
loses; the step sizes do not agree, or the call leaves something open, so that there is nothing to
compare with; the function has no derivative here; they differ, and the Function is made to (its
forward is flat or the identity), or it is a sample; forward gives another result each time; it
could not be run again; they agree."""


class GradientComparison(Struct, frozen=True):
    """The derivative by one input of a call, where it differs most from finite differences.

    ``input`` counts the call's tensors that carry a gradient.  ``element`` is the index of the
    element that was moved, None where all were moved together in a random direction.  ``analytic``
    is None where backward gives no gradient.  ``error`` is the difference relative to the larger
    number, or to the size of the input's gradient where both are far below it.
    """

    input: int
    name: str
    verdict: Verdict
    analytic: Number | None = None
    numeric: Number | None = None
    error: Norm | None = None
    element: tuple[int, ...] | None = None


WRITES_UPSTREAM = "its backward changes the gradient it is given in place"
IGNORES_UPSTREAM = "its backward returns the same, whatever gradient it receives"
"""Reasons of a verdict, whatever the numbers are."""


class CallCheck(Struct, frozen=True):
    """One torch call of the program, run again alone.

    ``nodes`` are those that it made in the graph, the one of its result first.  ``reason`` says why
    where the verdict does not.  ``order`` 1 is its backward beside differences of its forward, 2
    its double backward beside differences of its backward.  The doctor also tells of calls whose
    nodes are in another graph of the run than the one shown: those have no ``nodes``, and an
    ``origin``.  ``returned`` is where the backward of a custom Function ends, known only there.
    """

    nodes: Annotated[tuple[NodeId, ...], Meta(min_length=1)]
    function: str
    verdict: Verdict
    inputs: tuple[GradientComparison, ...] = ()
    reason: str = ""
    order: int = 1
    origin: OriginId | None = None
    returned: int | None = None


class LeafCheck(Struct, frozen=True):
    """The gradient that the program's own graph gives some leaves, against differences of the whole
    program in one random direction of those leaves.

    ``leaves`` index ``graph.leaves``; the numbers are directional derivatives.
    """

    leaves: Annotated[tuple[LeafId, ...], Meta(min_length=1)]
    verdict: Verdict
    analytic: Number | None = None
    numeric: Number | None = None
    error: Norm | None = None
    reason: str = ""


class Checks(Struct, frozen=True):
    """All that was compared.

    ``repeats`` counts calls that were left out because one at the same place was checked,
    ``covered`` nodes that a backward pass made and that only the whole program covers.  ``reason``
    says why the whole program was not compared, where it was not.
    """

    calls: tuple[CallCheck, ...] = ()
    leaves: tuple[LeafCheck, ...] = ()
    repeats: int = 0
    covered: int = 0
    reason: str = ""

    @property
    def counted(self) -> str:
        """``3 calls: 1 wrong, 2 right · whole program: 1 right``."""
        told = []
        calls = count(len(self.calls), "call")
        for what, some in ((calls, self.calls), ("whole program", self.leaves)):
            many = Counter(one.verdict for one in some)
            tally = [f"{many[one]:,} {one}" for one in get_args(Verdict) if many[one]]
            told += [f"{what}: {', '.join(tally)}"] if tally else []
        return " · ".join(told)

    @property
    def is_wrong(self) -> bool:
        """Whether any derivative is wrong."""
        verdicts = {one.verdict for one in self.calls} | {one.verdict for one in self.leaves}
        return "wrong" in verdicts


# ---------------------------------------------------------------- pieces of a gradient

PieceKind = Literal["term", "sample", "output"]
"""What the pieces stand for: tensors that the root adds up, or that were named; rows of the
tensors that a loss reduces; elements of the root, each with the gradient 1."""

MOST_COMPARED = 16
"""Pieces up to which each two of them are compared."""


class SplitPiece(Struct, frozen=True):
    """One summand of the gradient.

    ``nodes`` are those at which it begins; for a sample or an output, ``index`` is its place in
    the tensors there.  ``value`` is what a term of one number adds to the root, with sign and
    factor, or the element that an output is.  ``rest``: this is what goes through no other piece.
    """

    name: str
    nodes: tuple[NodeId, ...] = ()
    index: tuple[int, ...] = ()
    value: Number | None = None
    rest: bool = False

    @property
    def plain_name(self) -> str:
        """The name without the numbers that tell it from others of this name, and of how many
        it is."""
        return re.sub(r"( #\d+)?( ×[\d,]+)?$", "", self.name)


class SplitLeaf(Struct, frozen=True):
    """What the pieces bring to one leaf: the 2-norm of each, and where there are at most
    :data:`MOST_COMPARED`, the inner product of each with those before it."""

    leaf: LeafId
    norms: tuple[Norm, ...]
    products: tuple[tuple[Number, ...], ...] = ()


class SplitNode(Struct, frozen=True):
    """What arrives of the pieces at a node that is no leaf: the 2-norm of each."""

    node: NodeId
    norms: tuple[Norm, ...]
    products: ClassVar[tuple[()]] = ()


class Mixing(Struct, frozen=True):
    """Where a sample was first seen to get gradient of another: the node, and which share of what
    it sent on, by norm, went to other rows than its own."""

    node: NodeId
    share: Number


class Split(Struct, frozen=True):
    """The answer of ``gradscope backward --by``.

    ``rows`` names the tensors whose rows are the samples, ``total`` counts all samples or outputs,
    of which only so many may be pieces.  ``nodes`` are, of terms, those made by a line of the
    program where the gradient is taken apart.
    """

    kind: PieceKind
    pieces: Annotated[tuple[SplitPiece, ...], Meta(min_length=1)]
    leaves: tuple[SplitLeaf, ...]
    nodes: tuple[SplitNode, ...] = ()
    rows: tuple[str, ...] = ()
    total: int = 0
    mixing: Mixing | None = None


class Combined:
    """What the pieces bring to several places together, as to one that holds all their elements.

    ``norms`` are those of the pieces, ``norm`` that of their sum, None where it is not known.
    """

    def __init__(self, places: Iterable[SplitLeaf | SplitNode]) -> None:
        known = list(places)
        columns = zip(*(one.norms for one in known), strict=True)
        self.norms = [math.hypot(*map(float, column)) for column in columns]
        self._products = [
            [sum(map(float, column)) for column in zip(*rows, strict=True)]
            for rows in zip(*(one.products for one in known), strict=True)
        ]

    @property
    def norm(self) -> float | None:
        """The 2-norm of the sum of all pieces."""
        if len(self._products) != len(self.norms):
            return None
        return self.together(*range(len(self.norms)))

    @cached_property
    def shares(self) -> list[float]:
        """Of each piece its norm as a part of the sum of all norms; NaN where these are not
        finite."""
        total = sum(self.norms)
        total = total if math.isfinite(total) else math.nan
        return [one / total if total else 0.0 for one in self.norms]

    def cosine(self, one: int, other: int) -> float | None:
        """The cosine of the angle between two pieces; None where one of them is 0 or not finite,
        or where they were not compared."""
        first, last = sorted((one, other))
        size = self.norms[first] * self.norms[last]
        if not 0 < size < math.inf or last >= len(self._products):
            return None
        return max(-1.0, min(1.0, self._products[last][first] / size))

    def against_others(self, one: int) -> float | None:
        """The cosine of the angle between a piece and the sum of all others; None where one of them
        is 0 or not finite, or where they were not compared."""
        if len(self._products) != len(self.norms):
            return None
        along = sum(self._product(one, at) for at in range(len(self.norms)) if at != one)
        size = self.norms[one] * self.others(one)
        return max(-1.0, min(1.0, along / size)) if 0 < size < math.inf else None

    def others(self, one: int) -> float:
        """The 2-norm of the sum of all pieces but this, which have been compared."""
        return self.together(*(at for at in range(len(self.norms)) if at != one))

    def together(self, *pieces: int) -> float:
        """The 2-norm of the sum of some pieces, which have been compared."""
        square = sum(self._product(first, second) for first in pieces for second in pieces)
        # Of pieces that cancel rounding may leave less than nothing.
        return math.sqrt(square) if square > 0 else square * 0

    def _product(self, first: int, second: int) -> float:
        if first == second:
            return self.norms[first] ** 2
        return self._products[max(first, second)][min(first, second)]

    def opposed(self, least: float = 0.0) -> tuple[float, int, int] | None:
        """The lowest cosine, and the two pieces that it is of, whose norms are above ``least``."""
        pairs = (
            (cosine, one, other)
            for other in range(len(self._products))
            for one in range(other)
            if min(self.norms[one], self.norms[other]) > least
            and (cosine := self.cosine(one, other)) is not None
        )
        return min(pairs, default=None)


class AxisSide(Struct, frozen=True):
    """One of the two tensors, and the axis whose indices are told apart; None of one element."""

    name: str
    node: NodeId
    output: int
    shape: tuple[Annotated[int, Meta(ge=1, le=2**63 - 1)], ...]
    axis: int | None = None

    @property
    def size(self) -> int:
        """The indices along the axis."""
        return 1 if self.axis is None else self.shape[self.axis]

    def at(self, index: object) -> str:
        """``x[:, 3]``: some of it, as the program would write it."""
        return self.name if self.axis is None else f"{self.name}[{':, ' * self.axis}{index}]"


class Crossing(Struct, frozen=True):
    """The node at which the gradient of one index of ``of`` first came to others; if not ``exact``,
    the last at which it is known to be at its own alone."""

    row: int
    node: NodeId
    exact: bool = True


class Dependence(Struct, frozen=True):
    """The answer of ``gradscope depends``.

    ``norms`` has a row for each index of ``of`` in ``rows``: the 2-norm of the gradient that it
    alone brings to each index of ``on``.  What is up to ``rounding`` may be that.  ``chosen``:
    nobody gave the axes.
    """

    of: AxisSide
    on: AxisSide
    rows: tuple[int, ...] = ()
    norms: tuple[tuple[Norm, ...], ...] = ()
    rounding: Number = 0.0
    chosen: bool = False
    crossing: Crossing | None = None


class Pair(NamedTuple):
    """An index of ``of`` that depends on one of ``on``."""

    norm: float
    row: int
    column: int


class Pattern:
    """What the numbers say.

    ``pairs`` are where a gradient comes to, ``later`` and ``earlier`` those of another index,
    ``bad`` where it is not finite; ``small`` is the largest share of a row that does not count.
    """

    def __init__(self, found: Dependence) -> None:
        least = float(found.rounding)
        self.bad: list[Pair] = []
        self.pairs: list[Pair] = []
        self.small = 0.0
        for row, norms in zip(found.rows, found.norms, strict=True):
            pairs = [Pair(float(norm), row, column) for column, norm in enumerate(norms) if norm]
            finite = [pair for pair in pairs if math.isfinite(pair.norm)]
            self.bad += [pair for pair in pairs if not math.isfinite(pair.norm)]
            largest = max((pair.norm for pair in finite), default=0.0)
            self.pairs += [pair for pair in finite if pair.norm > least]
            shares = (pair.norm / largest for pair in finite if pair.norm <= least)
            self.small = max(self.small, *shares, 0.0)
        self.is_square = found.of.size == found.on.size > 1
        self.later = [one for one in self.pairs if one.column > one.row and self.is_square]
        self.earlier = [one for one in self.pairs if one.column < one.row and self.is_square]
