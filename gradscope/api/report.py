"""A Report that can show itself."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Unpack

import msgspec

from gradscope import render
from gradscope.api.keywords import drawing, public, spelled_out
from gradscope.errors import ReportError
from gradscope.escaping import visible
from gradscope.formats import TEXTS
from gradscope.model import report as plain
from gradscope.model.plain import GradientInfo
from gradscope.model.rows import TermRow, term_rows
from gradscope.model.studies import SplitLeaf
from gradscope.render.drawing.head import by_size
from gradscope.render.drawing.parameters import parameters
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options, ToDraw
from gradscope.render.words.numbers import number
from gradscope.simplify.folded import leaf_called
from gradscope.words import count, one_line

LONGEST_LABEL = 60
"""Characters of the root's name in a short text."""


class LeafGradient(plain.Leaf, frozen=True):
    """A leaf of a report, with what backward brought to it.

    ``names`` are all by which the program knows it, ``tensor`` its shape and dtype, ``norm`` the
    2-norm of its values; ``gradient`` is the one that the first pass brought, None where the report
    holds none.
    """

    gradient: GradientInfo | None = None

    @classmethod
    def of(cls, leaf: plain.Leaf, gradient: GradientInfo | None) -> LeafGradient:
        """A leaf with its gradient."""
        return cls(leaf.node, leaf.names, leaf.tensor, leaf.origin, leaf.norm, gradient)

    def __repr__(self) -> str:
        name = visible(one_line(self.names[0])) if self.names else f"#{self.node}"
        shape = list(self.tensor.shape)
        if self.gradient is None:
            told = "no gradient in this report"
        elif self.gradient.norm is None:
            told = f"gradient {self.gradient.state}"
        else:
            told = f"‖g‖ {number(self.gradient.norm)}"
        return f"<Leaf {name[:LONGEST_LABEL]}: {self.tensor.dtype} {shape}, {told}>"


class Report(plain.Report, frozen=True):
    """What was found about one graph: plain data (see :mod:`gradscope.model.report`) that can show
    itself.

    ``graph`` holds nodes, edges and leaves, ``passes`` the gradients, ``notes`` whole sentences for
    the reader, and ``findings`` what a doctor found.  ``explanation``, ``checks``, ``memory``,
    ``split`` and ``dependence`` are there where they were asked for.
    """

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
            facts += self._odd()
        # Without observations nobody has looked for any.
        if self.findings or self.observations is not None:
            facts.append(count(len(self.findings), "finding"))
        name = f"{label}{more}: " if label else ""
        return f"<Report {name}{', '.join(facts)}; .show()>"

    @public
    def __str__(self) -> str:
        """What :meth:`show` prints, without colour."""
        return render.as_text(self, render.answer_format(self, "text"), drawing("str", ToDraw, {}))

    def _norm(self) -> float:
        """The 2-norm of what the first pass brought to all leaves together."""
        passed = self.passes[0]
        norms = (passed.gradients[one.new].norm for one in passed.accumulations)
        return math.hypot(*(float(norm) for norm in norms if norm is not None))

    def _odd(self) -> list[str]:
        """How many leaves got what teaches them nothing in the first pass."""
        brought = map(self.passes[0].brought, range(len(self.graph.leaves)))
        found = Counter(info.state for info in brought)
        bad, silent = found["non-finite"], found["zero"]
        told = [f"NaN or infinity at {count(bad, 'leaf')}"] if bad else []
        return told + ([f"only zeros at {count(silent, 'leaf')}"] if silent else [])

    # ------------------------------------------------------------------ as text and pictures

    @spelled_out(ToDraw)
    @public
    def show(
        self,
        format: Literal["tree", "code", "table", "markdown"] | None = None,
        **options: Unpack[ToDraw],
    ) -> None:
        """Print the report to standard output.

        Args:
            format: ``"tree"`` draws the graph, ``"code"`` shows the source beside its gradients,
                ``"table"`` lists the leaves, ``"markdown"`` is ``"code"`` to paste into an issue.
                By default what was asked for: the explanation, check or memory, else the tree.
            options:

        Raises:
            ValueError: for another format.
            GradscopeError: when ``path``, ``focus``, ``call`` or ``rank`` names nothing in the
                report.
        """
        chosen = drawing("show", ToDraw, options)
        if format is not None and format not in TEXTS:
            raise ValueError(
                f"show() draws {', '.join(TEXTS)}, not {format}; save() writes pictures and pages"
            )
        text = render.render(self, format or render.answer_format(self, "text"), chosen)
        render.output.write(render.output.STDOUT, str(text))

    @spelled_out(ToDraw)
    @public
    def save(
        self, file: str | Path, /, *, format: str | None = None, **options: Unpack[ToDraw]
    ) -> None:
        """Write a file; its suffix chooses the format, as for ``gradscope trace -o``.

        Args:
            file: .json, .json.gz, .dot, .svg, .png, .pdf, .html, .csv, .md or .txt.
            format: the format, where the suffix does not say it.
            options: as in :meth:`show`.

        Raises:
            OutputError: when the suffix is unknown or the file cannot be written; a file that was
                there before is kept.
            ToolMissing: when a picture is asked for and there is no Graphviz.
        """
        chosen = drawing("save", ToDraw, options)
        name = format or render.format_for(file)
        render.save(self, str(file), render.answer_format(self, name), chosen)

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

    @public
    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        from gradscope.render import notebook

        return notebook.mime_bundle(self, repr(self))

    # ------------------------------------------------------------------ as data

    @public
    def leaf(self, name: str) -> LeafGradient:
        """The leaf of this name, such as ``"fc1.weight"``.

        Raises:
            GradscopeError: when no leaf is called so; names the nearest.
        """
        found = leaf_called(self.graph, name)
        brought = self.passes[0].brought(self.graph.leaves.index(found)) if self.passes else None
        return LeafGradient.of(found, brought)

    @public
    def top(self, count: int = 10) -> list[LeafGradient]:
        """So many leaves with the largest gradients, largest first; with the smallest if negative.

        Those that are not finite come first either way; those that got no gradient are left out.

        Raises:
            GradscopeError: when the report holds no gradients.
        """
        if not self.passes:
            # In the words of the table, which cannot be sorted by them either.
            parameters(Scene(self, Options(top=count or 1)))
        passed = self.passes[0]
        leaves = enumerate(self.graph.leaves)
        found = [LeafGradient.of(leaf, passed.brought(place)) for place, leaf in leaves]
        sign = 1 if count < 0 else -1
        known = ((one.gradient, one) for one in found if one.gradient is not None)
        sized = [(info, one) for info, one in known if info.norm is not None]
        sized.sort(key=lambda pair: by_size(pair[0], sign))
        return [one for _, one in sized[: abs(count)]]

    @public
    def by_term(self) -> dict[str, TermRow]:
        """What each term of the loss brings, by what the program calls it; of a report that was
        made with ``by="term"``.

        ``modules`` of a term has the 2-norm of what it brings to each leaf, by name.

        Raises:
            GradscopeError: when the report holds no gradient that was taken apart by term.
        """
        split = self.split
        if split is None or split.kind != "term":
            raise ReportError("the report tells nothing by term", 'make one with by="term"')
        parts: dict[str, list[SplitLeaf]] = {}
        for leaf in split.leaves:
            parts.setdefault(self.graph.leaves[leaf.leaf].name, []).append(leaf)
        return term_rows(split, parts)


@dataclass(frozen=True)
class Page:
    """The interactive page of a report in a frame of ``height`` pixels; a notebook draws it."""

    report: Report
    height: int

    def __repr__(self) -> str:
        return f"<Page of {self.report!r}; in a notebook, or report.save('graph.html')>"

    @public
    def _repr_html_(self) -> str:
        from gradscope.render import notebook

        return notebook.frame(self.report, self.height)
