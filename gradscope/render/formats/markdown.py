"""The listing in a fenced block, to paste into an issue or a chat."""

from __future__ import annotations

from dataclasses import replace

from gradscope.model.report import Report
from gradscope.render.formats import code
from gradscope.render.options import Options
from gradscope.render.words.text import fenced


def render(report: Report, options: Options) -> str:
    """The listing as a block."""
    return fenced(code.render(report, replace(options, color=False)))
