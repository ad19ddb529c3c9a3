"""The comparison as a page."""

from __future__ import annotations

from dataclasses import replace

from gradscope.analyses.diff import Comparison
from gradscope.render.answers import difference
from gradscope.render.options import Options
from gradscope.render.words.page import page


def render(comparison: Comparison, options: Options) -> str:
    """The page; see :mod:`gradscope.render.answers.difference` for what is on it."""
    shown = replace(options, color=True, unicode=True)
    title = f"{comparison.a.target} and {comparison.b.target}"
    return page(title, difference.render(comparison, shown))
