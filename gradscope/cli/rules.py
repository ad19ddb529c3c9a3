"""The rules of the doctor, by code or name, and their pages."""

from __future__ import annotations

from gradscope.diagnose import RULES, Rule, find_rule
from gradscope.render.words.rule_pages import page


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
