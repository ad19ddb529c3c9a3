"""From a Report to text or a picture: one format a module, named like ``--format`` names it.

A format module has one function, ``render(report, options)``, and touches neither files nor
streams.  It is declared in :mod:`gradscope.formats`, and imported when it is asked for.  Must not
know of torch, or of how a report was made."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from gradscope.errors import OutputError, ToolMissing
from gradscope.formats import ANSWERS, FORMATS, PICTURES, SEVERAL_GRAPHS, TEXTS, WORDS_ALONE
from gradscope.model.report import Report
from gradscope.render import output
from gradscope.render.options import Options, Overlay
from gradscope.render.words.numbers import precise
from gradscope.render.words.text import fenced
from gradscope.words import option

if TYPE_CHECKING:
    from gradscope.analyses.diff.comparison import Comparison
    from gradscope.model.history import History

__all__ = ["Options", "answer_format", "as_text", "check_place", "format_for", "render", "save"]


_PAGE_WIDTH = 39
"""Cells of a text that stands beside the graph on a page."""


# Of Markdown itself a block is made where it is written.
_ASKED = ("text", "markdown")
_BLOCKS = {*TEXTS, *(one[way] for one in ANSWERS.values() for way in _ASKED if way in one)}
_BLOCKS -= {"markdown"}


class Renderer(Protocol):
    """The one thing a format module has."""

    def render(self, report: Any, options: Options) -> str | bytes:
        """The report in this format; text that is not binary may still be bytes in UTF-8."""


def render(
    report: Report | Comparison | History, format: str, options: Options | None = None
) -> str | bytes:
    """The report in a format of :data:`FORMATS`, or a command's own answer in one of its own.

    Raises:
        GradscopeError: when there is no such format, the graph cannot be drawn in it, or a tool for
            it is missing.
    """
    module = _renderer(format)
    options = options or Options()
    if isinstance(report, Report):
        check_place(_command(report), format)
        is_picture = format in PICTURES and not options.sides
        has_more = report.others or is_picture or any(one.error for one in report.passes)
        if has_more and format not in SEVERAL_GRAPHS:
            from gradscope.render.drawing.several import drawn_alone

            report = drawn_alone(report, options.call, is_picture)
        if options.overlay is None:
            options = replace(options, overlay=_overlay(report))
        told = answer_format(report, "text")
        if format == "html" and told not in FORMATS:
            plain = replace(options, width=_PAGE_WIDTH, color=False)
            options = replace(options, answer=as_text(report, told, plain))
    with precise(options.precision):
        return module.render(report, options)


def _overlay(report: Report) -> Overlay | None:
    """What a picture shows of a command's answer."""
    if report.checks is None and report.memory is None:
        return None
    from gradscope.render.drawing import overlay

    if report.checks is not None:
        return overlay.verdicts(report.checks, report.graph)
    return None if report.memory is None else overlay.saved(report.memory)


def as_text(
    report: Report | Comparison | History, format: str, options: Options | None = None
) -> str:
    """What :func:`render` gives in a format that is text.

    Raises:
        GradscopeError: as :func:`render` does.
    """
    content = render(report, format, options)
    return content.decode("utf-8") if isinstance(content, bytes) else content


def _renderer(format: str) -> Renderer:
    if format in FORMATS:
        room = "formats"
    elif any(format in answer.values() for answer in ANSWERS.values()):
        room = "answers"
    else:
        raise OutputError(f"there is no format {format}", f"known formats: {', '.join(FORMATS)}")
    return cast(Renderer, importlib.import_module(f"gradscope.render.{room}.{format}"))


def format_for(path: str | Path) -> str:
    """The format that a file's name asks for, ``text`` by .txt; a further ``.gz`` asks for
    compression.

    Raises:
        OutputError: naming the known suffixes.
    """
    name = Path(path).name.lower().removesuffix(".gz")
    for format, entry in FORMATS.items():
        if name.endswith(entry.suffixes):
            return "text" if name.endswith(".txt") else format
    known = " ".join(suffix for entry in FORMATS.values() for suffix in entry.suffixes)
    what = f"{path}: its suffix names no format"
    raise OutputError(what, f"known suffixes: {known}; or say it with {option('format', 'FORMAT')}")


def check_place(command: str, format: str) -> None:
    """Raises: OutputError, for a format that has no place for the answer of a command."""
    if format in WORDS_ALONE.get(command, ()):
        ways = "name a file: .txt, .md and .html hold it in words, .json its numbers"
        raise OutputError(f"{format} has no place for what {command} tells", ways)


def answer_format(report: Report, name: str) -> str:
    """The format for what was asked of a report: an answer of :data:`ANSWERS` has one of its own
    for ``text``, and for what else is named there."""
    return ANSWERS[_command(report)].get(name, name)


def _command(report: Report) -> str:
    """Whose answer a report holds, of :data:`ANSWERS`."""
    asked = {
        "explain": report.explanation,
        "check": report.checks,
        "memory": report.memory,
        "terms": report.split if report.split and report.split.kind == "term" else None,
        "split": report.split,
        "depends": report.dependence,
        "doctor": report.observations,
    }
    return next((word for word, answer in asked.items() if answer is not None), "graph")


def save(
    report: Report | Comparison | History, path: str, format: str, options: Options | None = None
) -> bool:
    """Render and write to a file, or to stdout for ``-``; see
    :func:`gradscope.render.output.write`.

    When the tool for a picture is missing, the picture's DOT text is left beside the wanted file.
    A text that stands in a file of Markdown is a block of it.

    Raises:
        GradscopeError: an existing file is then still as it was.
    """
    try:
        content = render(report, format, options)
        if path.lower().endswith(".md") and format in _BLOCKS and isinstance(content, str):
            content = fenced(content)
    except ToolMissing as error:
        if path == output.STDOUT:
            raise
        # A new name, not graph.dot: that may be a file of the user's.
        beside = f"{path}.dot"
        output.write(beside, render(report, "dot", options))
        hints = (f"the drawing as DOT text is in {beside}", *error.hints)
        raise ToolMissing(f"cannot make {path}: {error.what}", *hints) from None
    return output.write(path, content)
