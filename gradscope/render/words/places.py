"""How places in the user's files are shown, and where a click on one leads.

Must not know of graphs."""

from __future__ import annotations

from pathlib import PurePath
from urllib.parse import quote

from gradscope.escaping import visible
from gradscope.filesystem import here


def short_files(files: set[str]) -> dict[str, str]:
    """For every file the end of its path that tells it from the others."""
    shown: dict[str, str] = {}
    waiting = {file: PurePath(file).parts or (file,) for file in files}
    length = 1
    while waiting:
        ends: dict[tuple[str, ...], int] = {}
        for parts in waiting.values():
            ends[parts[-length:]] = ends.get(parts[-length:], 0) + 1
        for file, parts in list(waiting.items()):
            if ends[parts[-length:]] == 1 or length >= len(parts):
                shown[file] = visible("/".join(parts[-length:]))
                del waiting[file]
        length += 1
    return shown


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
