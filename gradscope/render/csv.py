"""The leaves as comma-separated values, one line each: for spreadsheets and scripts.

Numbers have all their digits; what is not known is an empty field."""

from __future__ import annotations

import csv
import io

from gradscope.render._parameters import Parameter, parameters
from gradscope.render._scene import Scene
from gradscope.render.numbers import shape
from gradscope.render.options import Options
from gradscope.report import Report


def render(report: Report, options: Options) -> str:
    """A line of names, then a line for every leaf."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Parameter._fields)
    for row in parameters(Scene(report, options)):
        writer.writerow(row._replace(shape=shape(row.shape)))  # type: ignore[arg-type]
    return text.getvalue()
