"""The listing in a fenced block, to paste into an issue or a chat."""

from __future__ import annotations

import re
from dataclasses import replace

from gradscope.model.report import Report
from gradscope.render.formats import code
from gradscope.render.options import Options


def render(report: Report, options: Options) -> str:
    """The listing as a block."""
    return fenced(code.render(report, replace(options, color=False)))


def fenced(text: str) -> str:
    """A text as a block, whose fence is longer than any in what it holds."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}text\n{text}{fence}\n"
