"""Text for a terminal as a page for a browser, complete in one file, or as a part of another page;
and what any page may do: nothing but show itself.

If a text should ever get past the escaping, the browser still runs, loads and sends nothing of it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from gradscope.escaping import visible

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


_PRE = (
    '<pre style="line-height: 1.25; overflow-x: auto; white-space: pre; color: inherit; '
    'background: transparent">{code}</pre>'
)

# Halfway between black and white in brightness, so that both can be behind it.
_ANYWHERE = TerminalTheme(
    (255, 255, 255),
    (0, 0, 0),  # dimmed halfway to white
    [
        (118, 118, 118),
        (218, 54, 51),
        (46, 134, 64),
        (166, 110, 10),
        (31, 120, 230),
        (200, 60, 150),
        (22, 134, 144),
        (118, 118, 118),
    ],
)

_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'"


def policy(script: str = "") -> str:
    """The Content-Security-Policy of a page, for a ``<meta>`` element.

    Args:
        script: the text of the one script that may run, known to the browser by its hash.
    """
    if not script:
        return _NOTHING
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{_NOTHING}; script-src 'sha256-{digest}'"


def page(title: str, text: str) -> str:
    """A self-contained page that shows text with ANSI colours; every character of it is escaped."""
    named = html.escape(visible(title)).replace("{", "{{").replace("}", "}}")
    form = _FORMAT.replace("POLICY", policy()).replace("TITLE", named)
    return recorded(Text.from_ansi(text)).export_html(code_format=form)


def fragment(text: str) -> str:
    """The same as an element for the page of somebody else, which may be light or dark."""
    console = recorded(Text.from_ansi(text))
    return console.export_html(theme=_ANYWHERE, code_format=_PRE, inline_styles=True)


def recorded(shown: Text) -> Console:
    """A console that was shown a text and can write it as HTML."""
    width = max((line.cell_len for line in shown.split()), default=1)
    # In a notebook it would show the text itself as well.
    console = Console(
        record=True,
        file=io.StringIO(),
        width=width,
        color_system="truecolor",
        force_jupyter=False,
    )
    console.print(shown, soft_wrap=True)
    return console
