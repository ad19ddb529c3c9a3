"""The rules of the doctor, by code or name, and their pages."""

from __future__ import annotations

from difflib import get_close_matches

from gradscope.diagnose import RULES, Rule
from gradscope.errors import TargetError
from gradscope.render.words.rule_pages import page


def find(word: str) -> Rule:
    """The rule with this code, in any case, or this name.

    Raises:
        TargetError: there is none.
    """
    known = {name.lower(): rule for rule in RULES.values() for name in (rule.code, rule.name)}
    if word.lower() in known:
        return known[word.lower()]
    near = get_close_matches(word.lower(), known, n=1, cutoff=0.75)
    meant = f"did you mean {known[near[0]].code} {known[near[0]].name}? " if near else ""
    raise TargetError(f"{word} is no rule", f"{meant}gradscope rule lists them all")


def explain(word: str | None) -> str:
    """The page of a rule; without a word, all codes and names.

    Raises:
        TargetError: there is no such rule.
    """
    if word is None:
        return "".join(f"{rule.code}  {rule.name}\n" for rule in RULES.values())
    return page(find(word).code)
