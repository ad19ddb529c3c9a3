"""The bricks of the Report: its base class, its numbers, and what is known of one tensor; of one
gradient, whether it came, how large it is, and how its elements lie; and of one pass, what flowed
along every edge, and what came of it; with what holds of any number and tensor.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import msgspec

from gradscope.errors import ReportError
from gradscope.words import joined

NonFinite = Literal["NaN", "Infinity", "-Infinity"]
Number = float | NonFinite
"""A number as it is stored.  Non-finite ones are words, because JSON has no NaN and ``null`` means
"not known"; ``float(number)`` works on every form."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number that is not negative, which is looked at where a file is read."""

if TYPE_CHECKING:
    Norm = Number
else:
    Norm = Annotated[float, msgspec.Meta(ge=0)] | Literal["NaN", "Infinity"]
"""The same of what is stored as a :data:`Number`."""

NodeId = Annotated[int, "graph.nodes"]
EdgeId = Annotated[int, "graph.edges"]
LeafId = Annotated[int, "graph.leaves"]
RootId = Annotated[int, "graph.roots"]
OriginId = Annotated[int, "graph.origins"]
CallId = Annotated[int, "graph.calls"]
GradientId = Annotated[int, "gradients"]
RuleId = Annotated[int, "explanation.rules"]
RankId = Annotated[int, "ranks.each"]
"""Numbers that lead into a table, and its name; :mod:`gradscope.model.invariants` looks at each."""


_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""A float64 in MessagePack whose exponent is that of NaN and infinity; other data may look so."""


def number(value: float) -> Number:
    """A float as the Report stores it: non-finite values as words."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def to_json(data: Any) -> bytes:
    """Plain data as strict JSON, in which nothing is lost that :func:`storable` keeps."""
    try:
        text = msgspec.json.encode(data)
    except UnicodeEncodeError:
        return msgspec.json.encode(storable(data))
    # Nearly always this is all: to look at every number would take longer than writing them.
    if b"null" not in text or not _NOT_FINITE.search(msgspec.msgpack.encode(data)):
        return text
    return msgspec.json.encode(storable(data))


def storable(data: Any) -> Any:
    """Return the data as dicts, lists and what JSON can say.

    A float that is not finite becomes its word wherever it stands, for which msgspec would write
    ``null``; half a surrogate pair, as in the name of a file that is no UTF-8, its escape.
    """
    return _storable(msgspec.to_builtins(data))


def _storable(data: Any) -> Any:
    if isinstance(data, float):
        return number(data)
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {_storable(key): _storable(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_storable(value) for value in data]
    return data


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base of all records: frozen, defaults left out of the saved form, unknown fields refused.

    Frozen records cannot form cycles, so the garbage collector need not search them (``gc=False``);
    with 100,000 nodes it would do nothing else.
    """


class Record(msgspec.Struct, eq=False):
    """Base of what is filled in while a program runs, and never saved."""


Place = Annotated[int | None, "graph.origins"]
"""A field that says where something is: while the program runs by the number of the place, to a
rule by the index of an origin."""

AnyPlace = Annotated[Any, "graph.origins"]
"""The same where it may be a site while the program runs, as of a line that no call was seen in."""


class SeenRecord(Struct, frozen=True, forbid_unknown_fields=False):
    """Base of what may hold more in a file that an older version has saved, which is dropped."""


class BadRows(Struct, frozen=True, array_like=True):
    """Which places along the first axis of a tensor hold NaN or infinity, where not all of them do:
    ``bad`` of ``count``, the ``first`` of them by index; elements where it has no other axis."""

    bad: Count
    count: Count
    first: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]
    are_elements: bool = False

    def __str__(self) -> str:
        """``rows 5 and 7 of 8``, ``elements 0, 3, 4, 6 and 12 more of 64``."""
        noun = ("element" if self.are_elements else "row") + "s" * (self.bad > 1)
        more = [f"{self.bad - len(self.first):,} more"] * (self.bad > len(self.first))
        return f"{noun} {joined([*map(str, self.first), *more])} of {self.count:,}"


def in_rows(rows: Iterable[BadRows | None]) -> str:
    """``, in row 5 of 8``: where in some tensors what is not finite lies, as far as that is
    known."""
    known = dict.fromkeys(str(one) for one in rows if one is not None)
    return f", in {joined(known)}" if known else ""


RAGGED = -1
"""The size of a dimension in which the parts of a nested tensor differ, or may."""


class TensorInfo(Struct, frozen=True):
    """What is known of a tensor: its metadata and, where it is small or asked for, its values.

    ``values`` are in row-major order; a complex tensor has two numbers an element, real then
    imaginary. ``shape`` is in elements, :data:`RAGGED` where a nested tensor has no one size;
    ``dtype`` and ``layout`` are torch's names without the ``torch.`` prefix.  ``released``: the
    program had given its memory back when it was looked at, so that its elements could not be read.
    ``rows`` are those with NaN and infinity, where they were looked for.
    """

    shape: tuple[Annotated[int, msgspec.Meta(ge=RAGGED)], ...]
    dtype: str
    device: str = "cpu"
    layout: str = "strided"
    values: tuple[Number, ...] | None = None
    nan: int = 0
    inf: int = 0
    released: bool = False
    rows: BadRows | None = None


State = Literal["not reached", "none", "zero", "finite", "non-finite"]
"""What happened to a gradient: backward never came here; it came with an undefined gradient (None);
every element is zero; every element is finite and one is not zero; an element is NaN or
infinite."""

SILENT = ("not reached", "none")
"""States of what did not arrive as a tensor."""


class Histogram(Struct, frozen=True, array_like=True):
    """A tensor's elements by size: quarters of a decade of the absolute value.

    ``counts[i]`` elements lie from 10^((first + i) / 4) up to, and without, 10^((first + i + 1) /
    4), but for rounding at the borders; the first and the last count are not 0.  ``zeros`` are
    counted apart, and so are elements that are not finite, by the GradientInfo itself.
    """

    zeros: Count
    first: int = 0
    counts: tuple[Count, ...] = ()


class GradientInfo(SeenRecord, frozen=True):
    """One gradient tensor as it flowed: exactly one state, and its size.

    ``norm`` is the 2-norm over all elements (for complex, of the absolute values); it is None for
    the states "not reached" and "none", and for gradients of which nobody read the elements: those
    of meta tensors, which have none, and those that a doctor passed over.  ``absmax`` is
    the largest absolute value where it was looked at.  ``nan`` and ``inf`` count elements.
    ``values``, ``released`` and ``rows`` as in :class:`gradscope.model.plain.TensorInfo`.
    ``histogram`` is there where it was asked for.
    """

    state: State
    norm: Norm | None = None
    absmax: Norm | None = None
    nan: Count = 0
    inf: Count = 0
    dtype: str = "float32"
    layout: str = "strided"
    values: tuple[Number, ...] | None = None
    histogram: Histogram | None = None
    released: bool = False
    rows: BadRows | None = None

    @property
    def is_unread(self) -> bool:
        """Whether it arrived, but nobody read its elements: "finite" is then taken on trust."""
        return self.state == "finite" and self.norm is None


class Accumulation(Struct, frozen=True):
    """What happened to one leaf's ``.grad``: before + new = after.

    All three are indices into the pass's ``gradients``; ``before`` is None when ``.grad`` was None,
    ``after`` is None when nothing was accumulated (``torch.autograd.grad``, or gradscope's own
    pass, which leaves ``.grad`` untouched).  ``copies`` is not 0 where the tensor is spread
    over ranks: ``before`` and ``after`` are of the part that stays on this rank, after the
    gradients of all ranks were reduced, and so many ranks hold this part.
    """

    new: GradientId
    before: GradientId | None = None
    after: GradientId | None = None
    copies: int = 0


class BackwardPass(Struct, frozen=True):
    """The gradients of one backward call over the graph.

    ``gradients`` is a table; everything else points into it, because one gradient tensor often
    passes through many edges.  ``edges[i]`` belongs to ``graph.edges[i]``; ``upstream[n][k]`` is
    the sum that node n received for its output k; ``seeds[r]`` is what was given for
    ``graph.roots[r]``; ``accumulations[j]`` belongs to ``graph.leaves[j]``.  ``altered`` lists
    nodes whose upstream gradient a hook of the program replaced, so that it is no longer the sum of
    what arrived; ``hooks[i]`` is the place of the hook on ``altered[i]``, such as ``train.py:7``,
    or "" where it was not found.  ``number`` counts the program's backward calls from 1; 0 is
    gradscope's own.
    """

    gradients: tuple[GradientInfo, ...]
    edges: tuple[GradientId, ...]
    upstream: tuple[tuple[GradientId, ...], ...]
    seeds: tuple[GradientId, ...]
    accumulations: tuple[Accumulation, ...]
    altered: tuple[NodeId, ...] = ()
    hooks: tuple[str, ...] = ()
    number: int = 0
    origin: OriginId | None = None
    error: str = ""

    def hook_on(self, node: int) -> str | None:
        """The place of the hook that replaced the upstream gradient of a node, "" where it is not
        known; None where nothing replaced it."""
        if node not in self.altered:
            return None
        return self.hooks[self.altered.index(node)] if self.hooks else ""

    def on_edge(self, edge: int) -> GradientInfo:
        """The gradient that flowed along ``graph.edges[edge]``."""
        return self.gradients[self.edges[edge]]

    def brought(self, leaf: int) -> GradientInfo:
        """What arrived in total for ``graph.leaves[leaf]``."""
        return self.gradients[self.accumulations[leaf].new]

    def at(self, node: int, output: int = 0) -> GradientInfo:
        """The upstream gradient of a node for one of its outputs."""
        return self.gradients[self.upstream[node][output]]


# ---------------------------------------------------------------- what holds of any of them


def fail(place: str, rule: str) -> NoReturn:
    """Say which rule is broken where.

    Raises:
        ReportError: always.
    """
    raise ReportError(f"{place}: {rule}")


def in_range(indices: Iterable[int | None], size: int, place: str, table: str) -> None:
    """Indices lead into a table of this size; None leads nowhere on purpose.

    Raises:
        ReportError: naming the first that does not.
    """
    for index in indices:
        if index is not None and not 0 <= index < size:
            fail(place, f"{index} is not an index of {table}, which has {size}")


def check_tensor(tensor: TensorInfo, place: str) -> None:
    """A tensor has as many values as its shape says, or none.

    Raises:
        ReportError: where it is not so.
    """
    if tensor.values is None:
        return
    if RAGGED in tensor.shape:
        fail(place, f"has values, but its shape {list(tensor.shape)} does not say how many")
    expected = math.prod(tensor.shape) * (2 if tensor.dtype.startswith("complex") else 1)
    if len(tensor.values) != expected:
        fail(place, f"has {len(tensor.values)} values; its shape needs {expected}")


def check_gradient(info: GradientInfo, place: str) -> None:
    """The state of a gradient and its numbers tell the same story.

    Raises:
        ReportError: where they do not.
    """
    if (info.nan + info.inf > 0) != (info.state == "non-finite"):
        fail(place, f"is {info.state} with {info.nan} NaN and {info.inf} infinite elements")
    if info.state in SILENT:
        if (info.norm, info.absmax, info.values, info.histogram) != (None,) * 4:
            fail(place, f"is {info.state}, and still has numbers")
    elif info.norm == "NaN" and info.state != "non-finite":
        fail(place, f"is {info.state} with norm NaN")
    elif info.state == "zero" and info.norm not in (None, 0):
        fail(place, f"is zero with norm {info.norm}")
    elif info.values is not None:
        if info.dtype.startswith("complex") and len(info.values) % 2:
            fail(place, f"is {info.dtype} with {len(info.values)} values, which are no pairs")
        if (state := _state_of(info.values)) != info.state:
            fail(place, f"is {info.state}, but its values are {state}")


def _state_of(values: Sequence[Number]) -> State:
    numbers = [float(value) for value in values]
    if not all(map(math.isfinite, numbers)):
        return "non-finite"
    return "finite" if any(numbers) else "zero"
