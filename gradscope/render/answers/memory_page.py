"""The memory text as a page."""

from __future__ import annotations

from dataclasses import replace

from gradscope.model.report import Report
from gradscope.render.answers import memory
from gradscope.render.options import Options
from gradscope.render.words.page import page


def render(report: Report, options: Options) -> str:
    """The page; see :mod:`gradscope.render.answers.memory` for what is on it."""
    shown = replace(options, color=True, unicode=True)
    return page(f"memory of {report.meta.target}", memory.render(report, shown))
