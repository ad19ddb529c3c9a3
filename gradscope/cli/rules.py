"""The rules of the doctor, by code or name, and their pages."""

from __future__ import annotations

from pathlib import Path

from gradscope.diagnose import RULES, Rule, find_rule

_PACKAGE = Path(__file__).parent.parent


def find(word: str) -> Rule:
    """The rule with this code, in any case, or this name.

    Raises:
        TargetError: there is none.
    """
    return find_rule(word, "gradscope rule lists them all")


def explain(word: str | None) -> str:
    """The page of a rule; without a word, all codes and names.

    Raises:
        TargetError: there is no such rule.
    """
    if word is None:
        return "".join(f"{rule.code}  {rule.name}\n" for rule in RULES.values())
    return page(find(word).code)


def page(code: str) -> str:
    """The text of a rule's page."""
    # An installed package carries the pages; a checkout has them beside the package.
    folders = (_PACKAGE / "rules_pages", _PACKAGE.parent / "docs" / "rules")
    folder = next(folder for folder in folders if folder.is_dir())
    return (folder / f"{code}.md").read_text("utf-8")
