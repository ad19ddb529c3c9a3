"""The leaves as comma-separated values, one line each: for spreadsheets and scripts.

Numbers have all their digits; what is not known is an empty field.  A spreadsheet computes a field
that begins like a formula, and formulas can run programs and send data away: such a name or dtype
gets an apostrophe in front.  Numbers are left alone, negative ones too."""

from __future__ import annotations

import re

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.render.drawing.parameters import Parameter, parameters
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options
from gradscope.render.words.numbers import shape

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]")  # some languages type them wide
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")

_SEPARATING = re.compile(r'[,;"\t]')
"""A semicolon, too, parts the fields where the decimal sign is a comma."""


def render(report: Report, options: Options) -> str:
    """A line of names, then a line for every leaf."""
    rows: list[tuple[object, ...]] = [Parameter._fields]
    for row in parameters(Scene(report, options)):
        rows.append(tuple(row._replace(shape=shape(row.shape))))  # type: ignore[arg-type]
    return "".join(f"{','.join(map(_field, row))}\n" for row in rows)


def _field(value: object) -> str:
    """A field as it stands in the file.  The csv module quotes too little: it knows one separator
    only."""
    if not isinstance(value, str):
        return "" if value is None else str(value)
    text = visible(value)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    if not _SEPARATING.search(text):
        return text
    quoted = text.replace('"', '""')
    return f'"{quoted}"'
