"""The bricks of the invariants: how a broken one is told, what holds of any number or tensor; and
invariant 6: what flows into a node on its edges, plus its seed, is the node's upstream gradient.

Gradients are compared by their values where all are known, by their norms otherwise. Adding in
floating point is not exact, so every bound is relative to the magnitudes that were added, in the
coarsest dtype involved. Must not know of torch; it is called by :mod:`gradscope.model.invariants`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

from gradscope.errors import ReportError
from gradscope.model.plain import RAGGED, BadRows, Number, TensorInfo
from gradscope.model.report import BackwardPass, GradientInfo, Graph


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
    """A tensor has a shape, and as many values as that says, or none.

    Raises:
        ReportError: where it is not so.
    """
    if min(tensor.shape, default=0) < RAGGED:
        fail(place, f"shape {list(tensor.shape)} has a negative size")
    if broken := broken_rows(tensor.rows):
        fail(place, broken)
    if tensor.values is None:
        return
    if RAGGED in tensor.shape:
        fail(place, f"has values, but its shape {list(tensor.shape)} does not say how many")
    broken = unstorable(tensor.values)
    if broken:
        fail(place, broken)
    expected = math.prod(tensor.shape) * (2 if tensor.dtype.startswith("complex") else 1)
    if len(tensor.values) != expected:
        fail(place, f"has {len(tensor.values)} values; its shape needs {expected}")


def broken_rows(rows: BadRows | None) -> str:
    """What is wrong with the rows that hold NaN or infinity, or ""."""
    if rows is None or (
        0 < len(rows.first) <= rows.bad < rows.count
        and min(rows.first) >= 0
        and max(rows.first) < rows.count
    ):
        return ""
    return f"{rows.bad} of {rows.count} rows are not finite, the first of them {[*rows.first]}"


def unstorable(numbers: Iterable[Number | None]) -> str:
    """What is wrong with these numbers, or ""."""
    for number in numbers:
        # JSON would turn such a float into null, which means "not known".
        if isinstance(number, float) and not math.isfinite(number):
            return f'holds the float {number}; non-finite numbers are words such as "NaN"'
    return ""


EPSILON = {"float64": 2.3e-16, "complex128": 2.3e-16, "float16": 9.8e-4, "bfloat16": 7.9e-3}
"""Distance from 1 to the next number; all dtypes not named here count as float32."""

FLOAT32_EPSILON = 1.2e-7

SMALLEST = {"float16": 6e-8}
"""Where underflow begins to eat digits; far smaller for every other dtype."""

NORM_SLACK = 1e-3
"""Two norms of the same numbers differ by the order in which squares were added, and by the dtype
they were added in; squares below the second number vanish altogether in float32."""
NORM_FLOOR = 1e-18

SILENT = ("not reached", "none")
"""States of what did not arrive as a tensor."""


def check_sums(graph: Graph, backward: BackwardPass, place: str) -> None:
    """Check the upstream gradient of every output of every node against what arrived there.

    Raises:
        ReportError: for the first that differs, except at nodes where a hook of the program
        stepped in.
    """
    altered = set(backward.altered)
    for node, output, wrong in differences(graph, backward):
        if node not in altered:
            raise ReportError(f"{place}.upstream[{node}][{output}]: {wrong}")


def differences(graph: Graph, backward: BackwardPass) -> Iterator[tuple[int, int, str]]:
    """Each (node, output) whose upstream gradient is not the sum of what arrived, and in what
    way."""
    arrived = _arrivals(graph, backward)
    gradients = backward.gradients
    for node, row in enumerate(backward.upstream):
        for output, total in enumerate(row):
            parts = arrived[node][output]
            # Most gradients pass through unchanged, as the very same entry of the table.
            if parts == [total]:
                continue
            silent = all(
                gradients[part].state == "not reached" for parts in arrived[node] for part in parts
            )
            found = [gradients[part] for part in parts]
            wrong = _mismatch(found, gradients[total], silent, bool(backward.error))
            if wrong:
                yield node, output, wrong


def _arrivals(graph: Graph, backward: BackwardPass) -> list[list[list[int]]]:
    """For every node and output: the table entries of the gradients on its edges and of its
    seeds."""
    arrived: list[list[list[int]]] = [[[] for _ in row] for row in backward.upstream]
    for edge, entry in zip(graph.edges, backward.edges, strict=True):
        arrived[edge.target][edge.output].append(entry)
    for root, entry in zip(graph.roots, backward.seeds, strict=True):
        arrived[root.node][root.output].append(entry)
    return arrived


def _mismatch(found: list[GradientInfo], total: GradientInfo, silent: bool, failed: bool) -> str:
    """What is wrong with this sum, or ""."""
    parts = [part for part in found if part.state not in SILENT]
    if not parts:
        # An output nobody used is handed to its node as undefined, once the node runs at all.
        expected = ("not reached",) if silent else SILENT
        return "" if total.state in expected else f"is {total.state}, but no gradient arrived"
    if total.state == "not reached" and failed:
        return ""  # the pass stopped before this node ran
    if total.state not in SILENT and any(info.is_unread for info in (*parts, total)):
        return ""
    return _wrong_state(parts, total) or _wrong_size(parts, total)


def _wrong_state(parts: list[GradientInfo], total: GradientInfo) -> str:
    states = {part.state for part in parts}
    if total.state in SILENT:
        return f"is {total.state}, but {len(parts)} gradients arrived"
    if "non-finite" in states and total.state != "non-finite":
        return f"is {total.state}, but a gradient that arrived is not finite"
    if states == {"zero"} and total.state != "zero":
        return f"is {total.state}, but only zeros arrived"
    # Finite numbers may cancel to zero, and in a small dtype their sum may overflow; one alone
    # cannot.
    if len(parts) == 1 and total.state != parts[0].state:
        return f"is {total.state}, but the one gradient that arrived is {parts[0].state}"
    return ""


def _wrong_size(parts: list[GradientInfo], total: GradientInfo) -> str:
    everything = [*parts, total]
    if any(info.state == "non-finite" for info in everything):
        return ""
    # The coarsest dtype has rounded what the others only pass on.
    epsilon = max(EPSILON.get(info.dtype, FLOAT32_EPSILON) for info in everything)
    floor = max(SMALLEST.get(info.dtype, 1e-37) for info in everything)
    rows = [info.values for info in parts if info.values is not None]
    if total.values is not None and [len(row) for row in rows] == [len(total.values)] * len(parts):
        return _wrong_values(rows, total.values, 4 * epsilon * len(everything), floor)
    return _wrong_norm(parts, total, max(NORM_SLACK, 16 * epsilon), max(floor, NORM_FLOOR))


def _wrong_values(
    rows: Sequence[Sequence[float | str]], total: Sequence[float | str], slack: float, floor: float
) -> str:
    for position, value in enumerate(total):
        terms = [float(row[position]) for row in rows]
        bound = slack * sum(map(abs, terms)) + floor * len(terms)
        if abs(sum(terms) - float(value)) > bound:
            return f"element {position} is {value}, but {' + '.join(map(str, terms))} arrived"
    return ""


def _wrong_norm(parts: list[GradientInfo], total: GradientInfo, slack: float, floor: float) -> str:
    """The triangle inequality, both ways; for a single part it says that the norms are equal."""
    if total.norm is None or any(part.norm is None for part in parts):
        return ""
    norms = [float(part.norm or 0) for part in parts]
    whole, most = float(total.norm), sum(norms)
    if most == float("inf") or whole == float("inf"):
        return ""  # the squares overflowed, though the elements are finite
    # What is left of the longest when all the others point against it.
    least = 2 * max(norms) - most
    bound = slack * most + floor
    if least - bound <= whole <= most + bound:
        return ""
    return f"norm {whole} cannot be that of a sum of norms {', '.join(map(str, norms))}"
