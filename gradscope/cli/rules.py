"""The rules of the doctor, by code, name or a word of theirs, and their pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gradscope.cli.terminal import say
from gradscope.render.words.findings import sentence
from gradscope.render.words.text import wrapped
from gradscope.rules import RULES, Rule, find_rule

LIST = "gradscope rule lists them all"

_PARAGRAPH = re.compile(
    r"^```.*?^```$|^[^\n]+(?:\n(?!```|- |GS\d+  )[^\n]+)*", re.MULTILINE | re.DOTALL
)
"""A program, or lines that are read as one: a paragraph, an item, a rule of the list."""


def explain(words: Sequence[str]) -> str:
    """The page of a rule; of words that are in several, or without any, a line for each.

    Raises:
        TargetError: no rule has them all.
    """
    for note in RULES.problems:
        say(note)
    if not words:
        return _listed(RULES.values())
    found = _matching(words)
    if len(found) > 1:
        return _listed(found)
    rule = found[0] if found else find_rule(" ".join(words), LIST)
    return rule.page()


def fitted(text: str, width: int) -> str:
    """A page or a list in lines of at most so many cells; programs stay as they are."""
    return _PARAGRAPH.sub(lambda found: _broken(found[0], width), text)


def _broken(text: str, width: int) -> str:
    if text.startswith("```"):
        return text
    lead = " " * len("".join(re.findall(r"\A(?:- |GS\d+  )", text)))
    lines = wrapped(" ".join(map(str.strip, text.splitlines())), width - len(lead))
    return f"\n{lead}".join(lines)


def _matching(words: Sequence[str]) -> list[Rule]:
    """The rule of this code or name; else those in which each of the words begins one, in code,
    name or sentence, else anywhere on their pages."""
    for rule in RULES.values():
        if " ".join(words).lower() in (rule.code.lower(), rule.name.lower()):
            return [rule]
    begins = [re.compile(rf"\b{re.escape(word)}", re.IGNORECASE) for word in words]

    def has_all(text: str) -> bool:
        return all(one.search(text) for one in begins)

    known = [rule for rule in RULES.values() if has_all(_line(rule))]
    return known or [rule for rule in RULES.values() if has_all(rule.page())]


def _line(rule: Rule) -> str:
    return f"{rule.code}  {rule.name}  {sentence(rule.page())}"


def _listed(rules: Iterable[Rule]) -> str:
    return "".join(f"{_line(rule)}\n" for rule in rules)
