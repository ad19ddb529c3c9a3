"""What a check found, as a page for a browser: the text in its colours."""

from __future__ import annotations

from dataclasses import replace

from gradscope.model.report import Report
from gradscope.render.answers import checks
from gradscope.render.options import Options
from gradscope.render.words.page import page

WIDTH = 140


def render(report: Report, options: Options) -> str:
    """The page."""
    wide = replace(options, width=WIDTH, color=True, unicode=True)
    return page(f"check · {report.meta.target}", checks.render(report, wide))
