"""Text of a line of output: measured in terminal cells, cut, drawn with the signs there are; how
places in the user's files are shown, and where a click on one leads.

Names and source text come from any program; :func:`gradscope.escaping.visible` is the one function
that makes them safe to print, :func:`markup` the one that makes them safe in HTML and XML.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote

from rich.cells import cell_len, chop_cells

from gradscope.escaping import visible
from gradscope.filesystem import here, is_installed
from gradscope.words import SIGNS

if TYPE_CHECKING:
    from gradscope.model.observations import Severity


def markup(text: str) -> str:
    """The text safe inside HTML and XML, elements and attributes alike.

    Backslashes too: Graphviz replaces sequences such as ``\\N`` even inside HTML-like labels.
    """
    return html.escape(visible(text), quote=True).replace("\\", "&#92;")


def cells(text: str) -> int:
    """How many terminal cells a text takes."""
    return len(text) if text.isascii() else cell_len(text)


BADGES: dict[Severity, str] = {"error": "✖", "warning": "▲", "information": "△"}
"""One sign for each severity, worst first."""

INKS: dict[Severity, str] = {
    "error": "bold #d0327a",
    "warning": "bold #b45309",
    "information": "bold #1f86b3",
}


def worst(severities: Iterable[Severity]) -> Severity | None:
    """The worst of some severities, None of none."""
    return min(severities, key=list(BADGES).index, default=None)


_COUNT = re.compile(r" [×x][\d,]+$")


FEWEST_LEFT = 12
"""Cells of a path that is cut at one of its parts."""


def shorten(text: str, width: int, ellipsis: str, keep_end: bool = False) -> str:
    """At most ``width`` cells of a text, with an ellipsis where something was left out.

    A count at the end (``y*2 ×9``) is a number, and numbers are never cut.  With ``keep_end`` the
    beginning is left out.
    """
    if cells(text) <= width:
        return text
    count = _COUNT.search(text)
    if count and not keep_end:
        return shorten(text[: count.start()], width - cells(count[0]), ellipsis) + count[0]
    room = max(width - cells(ellipsis), 0)
    while cells(text) > room:
        excess = max((cells(text) - room) // 2, 1)
        text = text[excess:] if keep_end else text[:-excess]
    if not keep_end:
        return text + ellipsis
    # A path rather begins with a whole part of it, if enough is left.
    part = re.split(r"[./]", text, maxsplit=1)[-1]
    return ellipsis + (part if cells(part) >= max(2 * room // 3, FEWEST_LEFT) else text)


NARROWEST = 20
"""Cells that a paragraph has, however far it is indented."""


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines of at most this many cells, broken between words, never inside brackets of
    numbers unless there is no other place; a word that is longer is cut."""
    width = max(width, NARROWEST)
    lines: list[str] = []
    current = ""
    for word in _pieces(text, width):
        joined = f"{current} {word}" if current else word
        if current and cells(joined) > width:
            lines.append(current.rstrip())
            current = word
        else:
            current = joined
        if cells(current) > width:
            *full, current = chop_cells(current, width)
            lines += full
    return [*lines, current.rstrip()] if current else lines


def _pieces(text: str, width: int) -> Iterator[str]:
    """Words, a list of numbers counting as one where it fits a line; = stays with what follows."""
    lead = ""
    for piece in _bracketed_together(text):
        if piece == "=":
            lead = "= "
            continue
        yield from [lead + piece] if cells(lead + piece) <= width else (lead + piece).split(" ")
        lead = ""
    if lead:
        yield lead.strip()


def _bracketed_together(text: str) -> Iterator[str]:
    depth = 0
    piece: list[str] = []
    for word in text.split(" "):
        piece.append(word)
        depth = max(depth + word.count("[") - word.count("]"), 0)
        if not depth:
            yield " ".join(piece)
            piece = []
    if piece:
        yield from " ".join(piece).split(" ")


@dataclass(frozen=True)
class Glyphs:
    """The signs of the design language; every state has one, so that colour is never needed."""

    root: str = "◇"
    op: str = "○"
    leaf: str = "●"
    again: str = "↪"
    module: str = "▸"
    opened: str = "▾"
    sum: str = "Σ"
    edge: str = "↓"
    hook: str = "↻"
    saved: str = "▫"
    silent: str = "∅"
    bad: str = "✖"
    look: str = "△ ▲"
    branch: str = "├─"
    last: str = "└─"
    stem: str = "│ "
    inside: str = "┊ "
    ellipsis: str = "…"
    blocks: str = "▏▎▍▌▋▊▉█"
    levels: str = "▁▂▃▄▅▆▇█"
    ascii: bool = False

    def text(self, text: str) -> str:
        """Our own words and foreign ones, made visible, in what the terminal can show."""
        text = visible(text)
        if not self.ascii:
            return text
        for sign, plain in _PLAIN.items():
            text = text.replace(sign, plain)
        return text.encode("ascii", "backslashreplace").decode("ascii")


def legend(glyphs: Glyphs, width: int) -> list[str]:
    """What the signs of a tree mean, in lines that are broken where one ends."""
    told = (f"{getattr(glyphs, name)} {text}" for name, (_, text) in SIGNS.items())
    whole = "\xa0· ".join(one.replace(" ", "\xa0") for one in told)
    return [line.replace("\xa0", " ") for line in wrapped(whole, width)]


_PLAIN = {
    "‖": "|",
    "·": "-",
    "×": "x",
    "\u2013": "-",
    "…": "...",
    "→": "->",
    "∂": "d",
    "∅": "-",
    "²": "^2",
    "ᵀ": "^T",
    "√": "sqrt",
    "σ": "sigmoid",
    "Σ": "sum",
    "Φ": "Phi",
    "φ": "phi",
    "\N{COMBINING CIRCUMFLEX ACCENT}": "^",
    "⊗": "(x)",
    "π": "pi",
    "≥": ">=",
    "≤": "<=",
    "✓": "ok:",
    "✖": "!",
    "▲": "!",
    "△": "i",
}

UNICODE = Glyphs()
ASCII = Glyphs(
    root="%",
    op="o",
    leaf="*",
    again="^",
    module="#",
    opened="v",
    sum="+",
    edge="<",
    hook="%",
    saved="~",
    silent="-",
    bad="!",
    look="i !",
    branch="|-",
    last="`-",
    stem="| ",
    inside=": ",
    ellipsis="...",
    blocks="#",
    levels="_.:=+*%#",
    ascii=True,
)


def short_files(files: set[str]) -> dict[str, str]:
    """For every file the end of its path that tells it from the others."""
    shown: dict[str, str] = {}
    waiting = {file: PurePath(file).parts or (file,) for file in files}
    length = 1
    while waiting:
        ends = Counter(parts[-length:] for parts in waiting.values())
        for file, parts in list(waiting.items()):
            if ends[parts[-length:]] == 1 or length >= len(parts):
                shown[file] = visible("/".join(parts[-length:]))
                del waiting[file]
        length += 1
    return shown


def is_of_library(file: str) -> bool:
    """Whether a file is of an installed package, on whatever machine that was."""
    return is_installed(file.replace("\\", "/"))


def source_url(file: str, line: int) -> str:
    """A URL of a line of a Python file, relative to the working folder where that is possible;
    "" for what is no file."""
    if not file.endswith(".py"):
        return ""
    path, folder = PurePath(file), here()
    # Pictures travel: what can be said without a machine's folders is.
    path = path.relative_to(folder) if folder and path.is_relative_to(folder) else path
    try:
        url = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    except UnicodeEncodeError:  # a name that UTF-8 cannot hold
        return ""
    return f"{url}#L{line}"


def relative(file: str) -> str:
    """A path as a reader in the current directory writes it."""
    path, folder = PurePath(file), here()
    inside = folder and path.is_absolute() and path.is_relative_to(folder)
    return str(path.relative_to(folder)) if inside else file


def fenced(text: str) -> str:
    """A text as a block of Markdown, whose fence is longer than any in what it holds."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}text\n{text}{fence}\n"
