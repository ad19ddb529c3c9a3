"""The saved form, which ``gradscope show`` reads again.  Nothing is folded in it."""

from __future__ import annotations

from gradscope.model.report import Report
from gradscope.model.storage import encode
from gradscope.render.options import Options


def render(report: Report, options: Options) -> bytes:  # noqa: ARG001
    """The report as JSON; all of it, whatever the options."""
    return encode(report)
