"""Text for a terminal as a page for a browser, complete in one file."""

from __future__ import annotations

import html
import io

from rich.console import Console
from rich.text import Text

from gradscope.escaping import visible
from gradscope.render.words.policy import policy

_FORMAT = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="POLICY">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>TITLE</title>
<style>
{stylesheet}
body {{ color: {foreground}; background: {background}; margin: 2em; }}
pre {{ font-family: ui-monospace, Menlo, Consolas, monospace; line-height: 1.35; }}
</style>
</head>
<body>
<pre>{code}</pre>
</body>
</html>
"""


def page(title: str, text: str) -> str:
    """A self-contained page that shows text with ANSI colours; every character of it is escaped."""
    shown = Text.from_ansi(text)
    width = max((line.cell_len for line in shown.split()), default=1)
    console = Console(record=True, file=io.StringIO(), width=width, color_system="truecolor")
    console.print(shown, soft_wrap=True)
    named = html.escape(visible(title)).replace("{", "{{").replace("}", "}}")
    form = _FORMAT.replace("POLICY", policy()).replace("TITLE", named)
    return console.export_html(code_format=form)
