"""The page of a rule: what it means, how it is recognised, a program that has it, what to do."""

from __future__ import annotations

import re
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_CODE = re.compile(r"GS\d{3}", re.ASCII)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def page(code: str) -> str:
    """The text of a rule's page; "" for what is the code of none."""
    # Codes also come from saved files, and are not to lead anywhere else.
    if not _CODE.fullmatch(code):
        return ""
    # An installed package carries the pages; a checkout has them beside the package.
    folders = (_PACKAGE / "rules_pages", _PACKAGE.parent / "docs" / "rules")
    folder = next(folder for folder in folders if folder.is_dir())
    path = folder / f"{code}.md"
    return path.read_text("utf-8") if path.is_file() else ""


def alone(text: str) -> str:
    """A page for who has not the others: without its title, and without links to them."""
    _, _, rest = text.partition("\n")
    return _LINK.sub(r"\1", rest).strip() + "\n"


def sentence(text: str) -> str:
    """The paragraph below a page's title, which says in a sentence what is wrong."""
    return alone(text).partition("\n\n")[0].strip()
