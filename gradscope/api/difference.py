"""Two reports side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Unpack

import msgspec

from gradscope import render
from gradscope.analyses.diff import compare
from gradscope.analyses.diff.comparison import (
    Comparison,
    EdgeDifference,
    GraphDifference,
    LeafDifference,
    Tolerance,
    Verdict,
)
from gradscope.analyses.diff.union import passes, union
from gradscope.api.keywords import drawing, public, spelled_out
from gradscope.errors import CaptureError
from gradscope.formats import ANSWERS, FORMATS
from gradscope.model import storage
from gradscope.model.report import Report as PlainReport
from gradscope.render.drawing.overlay import overlay
from gradscope.render.drawing.two_sides import verdict
from gradscope.render.options import Options, ToCompare
from gradscope.words import count, either


class Difference:
    """What differs between two reports; made by :func:`diff`."""

    def __init__(self, a: PlainReport, b: PlainReport, found: Comparison) -> None:
        self._a = a
        self._b = b
        self.comparison = found

    @property
    def verdict(self) -> Verdict:
        """``"identical"``; ``"equal"`` within the tolerance; ``"different"``; or ``"unrelated"``,
        when hardly a node is shared."""
        return self.comparison.verdict

    @property
    def changes(self) -> tuple[GraphDifference, ...]:
        """How the graphs differ, in the order of the backward pass of ``a``."""
        return self.comparison.changes

    @property
    def edges(self) -> list[EdgeDifference]:
        """The edges whose gradients differ by more than the tolerance."""
        return self.comparison.differing_edges()

    @property
    def leaves(self) -> list[LeafDifference]:
        """The leaves whose values or gradients differ by more than the tolerance."""
        return self.comparison.differing_leaves()

    def __repr__(self) -> str:
        differing = [
            count(len(self.changes), "change"),
            count(len(self.edges), "edge"),
            count(len(self.leaves), "leaf"),
        ]
        more = f": {', '.join(differing)}" if self.verdict == "different" else ""
        return f"<Difference {self.verdict}{more}; .show()>"

    def __str__(self) -> str:
        """What :meth:`show` prints, in 100 columns."""
        return self._text(Options(width=100))

    def _text(self, options: Options) -> str:
        return render.as_text(self.comparison, ANSWERS["diff"]["text"], options)

    @spelled_out(ToCompare)
    @public
    def show(self, **options: Unpack[ToCompare]) -> None:
        """Print what differs to standard output.

        Args:
            options:
        """
        chosen = drawing("show", ToCompare, options)
        render.output.write(render.output.STDOUT, self._text(chosen))

    @spelled_out(ToCompare)
    @public
    def save(self, file: str | Path, /, **options: Unpack[ToCompare]) -> None:
        """Write a file: .txt, .md, .html or .json of what differs, or a picture of both graphs.

        Args:
            file: its suffix chooses the format.
            options: as in :meth:`show`.

        Raises:
            CaptureError: for a picture of two reports that have too little in common.
            OutputError: when the suffix is unknown or the file cannot be written; a file that was
                there before is kept.
        """
        chosen = drawing("save", ToCompare, options)
        name = render.format_for(file)
        name = ANSWERS["diff"].get(name, name)
        shown, chosen = in_one(self._a, self._b, self.comparison, chosen, name)
        render.save(shown, str(file), name, chosen)

    @public
    def _repr_html_(self) -> str:
        from gradscope.render.words.page import fragment

        return fragment(self._text(Options(width=120, color=True)))


@public
def diff(
    a: PlainReport | str | Path,
    b: PlainReport | str | Path,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
) -> Difference:
    """What differs between two reports: their graphs, leaves and gradients.

    Nodes correspond by module, expression and their place in the graph.  Two tensors are equal when
    the 2-norm of their difference is at most ``atol + rtol * (the larger norm)``; where a report
    does not hold all values, their norms are compared.

    Args:
        a: a report, or the file of one.
        b: the other.
        rtol: allow a difference of this part of the larger norm.
        atol: and of this much in any case.

    Raises:
        TypeError: when one of them is neither a report nor the name of a file.
        ValueError: when a tolerance is negative or NaN.
        ReportError: when a file holds no report that this version reads.
    """
    sides = _report("a", a), _report("b", b)
    return Difference(*sides, compare(*sides, Tolerance(rtol, atol)))


def _report(name: str, given: PlainReport | str | Path) -> PlainReport:
    if isinstance(given, PlainReport):
        return given
    if isinstance(given, (str, Path)):
        return storage.load(Path(given))
    raise TypeError(f"diff() compares reports; {name} is of type {type(given).__name__}")


def in_one(
    a: PlainReport, b: PlainReport, found: Comparison, options: Options, format: str
) -> tuple[PlainReport | Comparison, Options]:
    """Both graphs in one, with what differs marked and the gradients of both, and for a page what
    is said of them.  In a format of its own, what differs.

    Raises:
        CaptureError: when the two have too little in common to be drawn as one, except on a page,
            where each has its place.
    """
    if format not in FORMATS:
        return found, options
    first, second = found.names
    options = replace(options, verdict=verdict(found), sides=(f"A: {first}", f"B: {second}"))
    if format == "html":
        if not found.related:
            one, other = (
                msgspec.structs.replace(side, passes=side.passes[:1], others=()) for side in (a, b)
            )
            return msgspec.structs.replace(one, others=(other,)), options
        answer = render.as_text(found, ANSWERS["diff"]["text"], options)
        options = replace(options, answer=answer)
    elif not found.related:
        raise CaptureError(
            "A and B are different programs: there is no picture of both",
            either(
                "draw each on its own: gradscope backward TARGET -o FILE.svg", "save each alone"
            ),
        )
    both = union(a, b, found)
    report = both.report.of_target(" ↔ ".join(found.names))
    report = msgspec.structs.replace(report, passes=passes(a, b, both))
    return report, replace(options, overlay=overlay(found, both))
