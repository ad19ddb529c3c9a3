"""All rules that there are: found by looking into the folders of this package, and brought by
other packages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import get_args

from gradscope.errors import TargetError
from gradscope.handlers import let_pass
from gradscope.rules.rule import Agreement, Rule

_CODE = re.compile(r"GS[1-9]\d{2,4}", re.ASCII)
_NAME = re.compile(r"[a-z]+(-[a-z]+)*", re.ASCII)


_REMOVED = {
    f"GS{number}": "0.1.0"
    for number in (
        *(107, 207, 311, 314, 315, 319, 330, 331, 332, 411, 412, 510, 511, 513, 514, 516, 517),
        *(*range(519, 526), 531, 532, *range(535, 555), 557, 558, 559, 560, 602, 705),
    )
}
"""Codes of rules that there were once, and the version without them; none is given again."""


def _own() -> Iterator[str]:
    """The names of the modules of this package that hold a rule."""
    folder = Path(__file__).parent
    for path in sorted(folder.glob("*/*.py")):
        if not path.name.startswith("_") and path.parent.name != "questions":
            yield f"gradscope.rules.{path.parent.name}.{path.stem}"


def _rules_in(module: str) -> Iterator[Rule]:
    """The rules of a module.

    Raises:
        ValueError: it holds none, or one that is not as a rule has to be.
        Exception: whatever importing it raises.
    """
    kinds = [
        kind
        for kind in vars(import_module(module)).values()
        if isinstance(kind, type) and issubclass(kind, Rule) and kind.__module__ == module
        # What others only share has no code of its own.
        if hasattr(kind, "code") and not inspect.isabstract(kind)
    ]
    if not kinds:
        raise ValueError(f"{module} holds no Rule with a code and a method look")
    for kind in kinds:
        rule = kind()
        if not _CODE.fullmatch(getattr(rule, "code", "")):
            raise ValueError(f"the code of {kind.__name__} is not GS and three to five digits")
        if not _NAME.fullmatch(getattr(rule, "name", "")):
            raise ValueError(f"the name of {rule.code} is not of small letters and -")
        if not set(rule.before.values()) <= set(get_args(Agreement)):
            raise ValueError(f"{rule.code}: before takes one of {', '.join(get_args(Agreement))}")
        yield rule


def _add(rules: dict[str, Rule], module: str) -> None:
    for rule in _rules_in(module):
        for other in rules.values():
            if rule.code == other.code or rule.name == other.name:
                place = type(other).__module__
                raise ValueError(f"{rule.code} {rule.name} has its code or name from {place}")
        rules[rule.code] = rule


def _found() -> tuple[dict[str, Rule], tuple[str, ...]]:
    rules: dict[str, Rule] = {}
    for module in _own():
        _add(rules, module)
    problems = []
    for entry in sorted(entry_points(group="gradscope.rules"), key=lambda entry: entry.name):
        try:
            _add(rules, entry.module)
        except Exception as error:
            let_pass(error)
            package = entry.dist.name if entry.dist is not None else entry.module
            said = f"{type(error).__name__}: {error}"
            problems.append(f"the rule {entry.name} of {package} cannot be used: {said}")
    return {code: rules[code] for code in sorted(rules)}, tuple(problems)


RULES, PROBLEMS = _found()
"""The rules by code, and in that order; and what is wrong with those that other packages bring."""


def find_rule(word: str, more: str = "", source: str = "") -> Rule:
    """The rule with this code, in any case, or this name.

    Args:
        word: the code or name.
        more: where all rules are listed.
        source: the option or setting that names it, if one does.

    Raises:
        TargetError: there is none.
    """
    more = more or "rules go by codes, such as GS303, or by names, such as history-cut"
    code = word.upper()
    if code in _REMOVED:
        heir = "; GS505 looks for what it found" if code == "GS540" else ""
        what = f"rule {code} was removed in version {_REMOVED[code]}{heir}"
        raise TargetError(what, f"take it out of {source}" if source else more)
    known = {name.lower(): rule for rule in RULES.values() for name in (rule.code, rule.name)}
    if word.lower() in known:
        return known[word.lower()]
    near = get_close_matches(word.lower(), known, n=1, cutoff=0.75)
    meant = f"did you mean {known[near[0]].code} {known[near[0]].name}? " if near else ""
    raise TargetError(f"unknown rule {word}", f"{meant}{more}")
