"""The saved form, which ``gradscope show`` reads again.  Nothing is folded in it."""

from __future__ import annotations

from gradscope.render.options import Options
from gradscope.report import Report
from gradscope.storage import encode


def render(report: Report, options: Options) -> bytes:  # noqa: ARG001
    """The report as JSON; all of it, whatever the options."""
    return encode(report)
