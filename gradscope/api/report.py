"""A Report that can show itself."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import msgspec

from gradscope import render
from gradscope.escaping import visible
from gradscope.model import report as plain
from gradscope.render.options import Options, ToPrint, ToSave, options_of
from gradscope.render.words.numbers import number
from gradscope.words import count, one_line

LONGEST_LABEL = 60
"""Characters of the root's name in a short text."""


class Report(plain.Report, frozen=True):
    """What was found about one graph: plain data (see :mod:`gradscope.model.report`) that can show
    itself."""

    @classmethod
    def of(cls, found: plain.Report) -> Report:
        """The same data with the ways of looking at it."""
        return cls(*msgspec.structs.astuple(found))

    def __repr__(self) -> str:
        """One line of at most 200 characters."""
        graph = self.graph
        label = visible(one_line(graph.roots[0].label)) if graph.roots else ""
        if len(label) > LONGEST_LABEL:
            label = f"{label[: LONGEST_LABEL - 1]}…"
        more = f" and {len(graph.roots) - 1:,} more" if len(graph.roots) > 1 else ""
        facts = [count(len(graph.nodes), "node"), count(len(graph.leaves), "leaf")]
        if self.passes:
            facts.append(f"‖g‖ {number(self._norm())}")
        # Without observations nobody has looked for any.
        if self.findings or self.observations is not None:
            facts.append(count(len(self.findings), "finding"))
        name = f"{label}{more}: " if label else ""
        return f"<Report {name}{', '.join(facts)}; .show()>"

    def _norm(self) -> float:
        """The 2-norm of what the first pass brought to all leaves together."""
        passed = self.passes[0]
        norms = (passed.gradients[one.new].norm for one in passed.accumulations)
        return math.hypot(*(float(norm) for norm in norms if norm is not None))

    def show(self, **options: Unpack[ToPrint]) -> None:
        """Print the tree to standard output.

        Args:
            depth: open modules down to this depth of calls.
            all: show every node; fold nothing.
            path: show only the ways from the root to the leaf of this name.
            focus: open the modules, functions, variables or expressions that match this pattern,
                with ``*`` and ``?``, and close the rest.
            top: list so many nodes with the largest gradients; with the smallest if negative.
            width: columns of the text; the terminal's own by default.
            lines: how many lines of it folding aims at.
            values: show the values of tensors of every size that the report holds.
            saved: show what each node saved for backward.
            call: which of several backward calls to show, by its number; by default the first.
            color: colour the text.
            unicode: draw with box characters rather than ASCII.

        Raises:
            TypeError: for any other keyword, or a value of another type.
            GradscopeError: when ``path``, ``focus`` or ``call`` names nothing in the report.
        """
        options["width"] = options.get("width") or shutil.get_terminal_size((100, 40)).columns
        drawing = _options(Report.show, ToPrint, options)
        render.output.write(render.output.STDOUT, str(render.render(self, "tree", drawing)))

    def save(self, file: str | Path, /, **options: Unpack[ToSave]) -> None:
        """Write a file; its suffix chooses the format, as for ``gradscope trace -o``.

        Args:
            file: .json, .json.gz, .dot, .svg, .png, .pdf, .html, .csv or .txt.
            options: as in :meth:`show`, and
            sort: the column of a .csv by which its rows are ordered.
            direction: which way the arrows of a picture point, ``"backward"`` or ``"forward"``.

        Raises:
            TypeError: for any other keyword, or a value of another type.
            OutputError: when the suffix is unknown or the file cannot be written; a file that was
                there before is kept.
            ToolMissing: when a picture is asked for and there is no Graphviz.
        """
        drawing = _options(Report.save, ToSave, options)
        render.save(self, str(file), render.format_for(file), drawing)

    def page(self, height: int = 520) -> Page:
        """The interactive page, for a notebook: what a cell ends with is shown in it.

        It is embedded whole, some 130 kB for each time that it is shown.

        Args:
            height: of its frame in the notebook, in pixels.

        Raises:
            TypeError: when ``height`` is no whole number above 0.
        """
        if isinstance(height, bool) or not isinstance(height, int) or height < 1:
            raise TypeError(f"page() takes a height in pixels, not {height!r}")
        return Page(self, height)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        from gradscope.render import notebook

        return notebook.mime_bundle(self, repr(self))


@dataclass(frozen=True)
class Page:
    """The interactive page of a report in a frame of ``height`` pixels; a notebook draws it."""

    report: Report
    height: int

    def __repr__(self) -> str:
        return f"<Page of {self.report!r}; in a notebook, or report.save('graph.html')>"

    def _repr_html_(self) -> str:
        from gradscope.render import notebook

        return notebook.frame(self.report, self.height)


def _options(method: Callable[..., None], known: type, given: Mapping[str, object]) -> Options:
    """What the keywords of a method come to; None is as good as left out.

    Raises:
        TypeError: naming the first that it does not know, and those that it does; or the first
            whose value is of another type.
    """
    names = known.__annotations__
    for name in given:
        if name not in names:
            raise TypeError(
                f"{method.__qualname__}() got an unexpected keyword argument {name!r}; "
                f"it takes {', '.join(names)}"
            )
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        return options_of(**msgspec.convert(chosen, known))
    except msgspec.ValidationError as error:
        raise TypeError(f"{method.__qualname__}(): {error}") from None
