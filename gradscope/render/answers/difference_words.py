"""The sentences of a comparison: the answer, and where the two part first."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.analyses.diff import Comparison, GraphDifference, NodePlace
from gradscope.analyses.diff.comparison import Distance
from gradscope.escaping import visible
from gradscope.render.words import numbers
from gradscope.render.words.places import short_files
from gradscope.render.words.text import shorten
from gradscope.words import count, listed, one_line

SIGNS = {
    "removed": "only in A",
    "added": "only in B",
    "changed": "changed",
    "cut": "edge only in A",
    "joined": "edge only in B",
    "moved": "edge leads elsewhere",
}

LONGEST = 60
"""Characters of an expression in a sentence."""


class DifferenceWords:
    """Says what a comparison found; every foreign text is made visible."""

    def __init__(self, comparison: Comparison) -> None:
        self.found = comparison
        self._files = short_files(_all_files(comparison))

    def source(self, place: NodePlace) -> str:
        """``model.py:7``, or ""."""
        return f"{self._files[place.file]}:{place.line}" if place.file else ""

    def answer(self) -> str:
        """The verdict in a sentence."""
        found = self.found
        if found.verdict == "different":
            return "different: " + ", ".join(self._parts())
        if found.verdict == "unrelated":
            return (
                f"different programs: {found.matched:,} of {found.a.nodes:,} and "
                f"{found.b.nodes:,} nodes correspond, too few to compare them one by one"
            )
        if found.verdict == "identical":
            return f"identical: {count(found.matched, 'node')}" + self._compared()
        distances = (distance for distance in self._distances() if distance is not None)
        largest = max((float(distance.relative) for distance in distances), default=0.0)
        return (
            f"equal within the tolerance: {count(found.matched, 'node')}"
            f"{self._compared()}, differences up to {numbers.number(largest)}"
        )

    def _parts(self) -> list[str]:
        """What differs, counted."""
        found = self.found
        counts: dict[str, int] = {}
        for change in found.changes:
            counts[change.what] = counts.get(change.what, 0) + 1
        nodes = {"removed", "added"}
        parts = [
            f"{count(many, 'node') if what in nodes else many} {SIGNS[what]}"
            for what, many in counts.items()
        ]
        values = sum(found.differs(leaf.values) for leaf in found.leaves)
        parts += [f"values of {count(values, 'leaf')} differ"] if values else []
        differing = len([edge for edge in found.differing_edges() if edge.a >= 0])
        if differing:
            parts.append(f"{differing:,} of {count(found.compared, 'gradient')} differ")
        return parts

    def _compared(self) -> str:
        if not self.found.compared:
            return ", no gradients to compare"
        return f", {count(self.found.compared, 'gradient')}"

    def _distances(self) -> Iterator[Distance | None]:
        yield from (edge.distance for edge in self.found.edges)
        for leaf in self.found.leaves:
            yield from (leaf.values, leaf.gradient)

    def first(self) -> Iterator[str]:
        """Where the two part: the cause, if it can be told from its effects."""
        found = self.found
        values = [leaf for leaf in found.leaves if found.differs(leaf.values)]
        if found.changes:
            yield from self._sentences(found.changes[0])
        elif values:
            names = listed((visible(leaf.name) for leaf in values), 3)
            yield f"in the values of {names}, before any gradient flowed"
        first = next(iter(found.differing_edges()), None)
        if first is not None:
            place = f"from {self._name(first.source)} to " if first.source else "given at "
            words = f"the first gradient that differs, in backward order: {place}"
            lead = "and then " if found.changes or values else ""
            yield f"{lead}{words}{self._name(first.target)}"

    def _sentences(self, change: GraphDifference) -> Iterator[str]:
        what = SIGNS[change.what]
        here = change.a or change.b
        if change.what == "changed":
            yield f"at {self._name(here)}: {change.detail}"
            return
        if change.what == "moved":
            yield f"an edge to {self._name(change.a)} leads to {self._name(change.b)} in B"
        else:
            lead = "an edge to " if change.what in ("cut", "joined") else ""
            yield f"{lead}{self._name(here)}: {what.removeprefix('edge ')}"
        above = change.above
        if above[0] is not None and above[1] is not None:
            yield f"it hangs below {self._name(above[0])}"
            if above[0].expression != above[1].expression:
                yield f"which in B is {self._name(above[1])}"

    def _name(self, place: NodePlace | None) -> str:
        if place is None:
            return "nothing"
        words = shorten(visible(one_line(place.expression)), LONGEST, "…")
        inside = f" in {visible(place.module)}" if place.module else ""
        at = f"{inside} ({self.source(place)})" if place.file else inside
        return f"{visible(place.op)} of {words}{at}" if words else f"{visible(place.op)}{at}"


def _all_files(found: Comparison) -> set[str]:
    places: list[NodePlace | None] = []
    for change in found.changes:
        places += [change.a, change.b, *change.above]
    for edge in found.edges:
        places += [edge.source, edge.target]
    return {place.file for place in places if place is not None and place.file}
