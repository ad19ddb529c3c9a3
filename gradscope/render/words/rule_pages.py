"""Parts of the page of a rule: what it means, how it is recognised, a program that has it."""

from __future__ import annotations

import re

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def alone(page: str) -> str:
    """A page for who has not the others: without its title, and without links to them."""
    _, _, rest = page.partition("\n")
    return _LINK.sub(r"\1", rest).strip() + "\n"


def sentence(page: str) -> str:
    """The paragraph below a page's title, which says in a sentence what is wrong; on one line."""
    return " ".join(alone(page).partition("\n\n")[0].split())
