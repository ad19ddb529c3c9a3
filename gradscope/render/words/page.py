"""What pages for a browser have in common: their frame, the files they hold, text for a terminal as
a part of them, and what any page may do: nothing but show itself.

If a text should ever get past the escaping, the browser still runs, loads and sends nothing of it.
"""

from __future__ import annotations

import base64
import hashlib
import io
from importlib import resources

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from gradscope.render.words.text import markup

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

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
</head>
<body>
{body}
{script}</body>
</html>
"""

_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'"


def page(title: str, body: str, script: str = "") -> str:
    """A whole page, in which one script may run: the browser knows it by its hash.

    Args:
        title: any text.
        body: HTML, its style included.
        script: what runs after all of it has been read.
    """
    policy, element = _NOTHING, ""
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy, element = (
            f"{_NOTHING}; script-src 'sha256-{digest}'",
            f"<script>{script}</script>\n",
        )
    return _FRAME.format(policy=policy, title=markup(title), body=body, script=element)


def asset(name: str) -> str:
    """The text of a file that is a part of pages: a script or a style."""
    return (resources.files("gradscope.render") / "assets" / name).read_text("utf-8")


def fragment(text: str) -> str:
    """Text with ANSI colours as an element for the page of somebody else, which may be light or
    dark; every character of it is escaped."""
    shown = Text.from_ansi(text)
    width = max((line.cell_len for line in shown.split()), default=1)
    # In a notebook it would show the text itself as well.
    console = Console(
        record=True, file=io.StringIO(), width=width, color_system="truecolor", force_jupyter=False
    )
    console.print(shown, soft_wrap=True)
    return console.export_html(theme=_ANYWHERE, code_format=_PRE, inline_styles=True)
