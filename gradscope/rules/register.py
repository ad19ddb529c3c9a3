"""All rules that there are: found by looking into the folders of this package, and brought by
other packages."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from gradscope.errors import TargetError
from gradscope.rules.rule import Rule


def _own() -> list[str]:
    """The names of the modules of this package that hold a rule."""
    folder = Path(__file__).parent
    return [
        f"gradscope.rules.{path.parent.name}.{path.stem}"
        for path in sorted(folder.glob("*/*.py"))
        if not path.name.startswith("_") and path.parent.name != "questions"
    ]


def _brought() -> list[str]:
    """The names of such modules of other packages."""
    return sorted(one.value for one in entry_points(group="gradscope.rules"))


def _found() -> dict[str, Rule]:
    for module in (*_own(), *_brought()):
        import_module(module)
    rules = [kind() for kind in Rule.__subclasses__()]
    return {rule.code: rule for rule in sorted(rules, key=lambda rule: rule.code)}


RULES: dict[str, Rule] = _found()
"""By code, and in that order."""


def find_rule(word: str, more: str = "") -> Rule:
    """The rule with this code, in any case, or this name.

    Args:
        word: the code or name.
        more: where all rules are listed.

    Raises:
        TargetError: there is none.
    """
    known = {name.lower(): rule for rule in RULES.values() for name in (rule.code, rule.name)}
    if word.lower() in known:
        return known[word.lower()]
    near = get_close_matches(word.lower(), known, n=1, cutoff=0.75)
    meant = f"did you mean {known[near[0]].code} {known[near[0]].name}? " if near else ""
    more = more or "rules go by codes, such as GS303, or by names, such as history-cut"
    raise TargetError(f"unknown rule {word}", f"{meant}{more}")
