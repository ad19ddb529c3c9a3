"""All rules that there are: found by looking into the folders of this package, and brought by other
packages; and the comments in a program that take findings back: ``# gradscope: ignore GS304,
GS205`` at the line that they name.

Comments are read in the program's files as they are on the disk, and in the cells of an open
notebook as its shell remembers them.
"""

from __future__ import annotations

import inspect
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from pathlib import Path
from typing import get_args

from gradscope.errors import TargetError
from gradscope.handlers import let_pass
from gradscope.model.observations import Finding
from gradscope.rules.facts import Facts
from gradscope.rules.rule import Agreement, Rule

_CODE = re.compile(r"GS[1-9]\d{2,4}", re.ASCII)
_NAME = re.compile(r"[a-z]+(-[a-z]+)*", re.ASCII)


_FOLDER = Path(__file__).parent
_PACKAGE = __name__.rpartition(".")[0]

_GONE = """103 104 107 207 208 302 304 308 309 310 311 312 314 315 316 317 318 319 330 331 332 404
    405 406 407 408 409 411 412 413 507 509 510 511 513 514 515 516 517 518 519 520 521 522
    523 524 525 530 531 532 533 534 535 536 537 538 539 540 541 542 543 544 545 546 547
    548 549 550 551 552 553 554 557 558 559 560 602 704 705"""
REMOVED = {f"GS{number}": "0.1.0" for number in _GONE.split()}
"""Codes of rules that there were once, and the version without them; none is given again."""


def _sees(*names: str) -> Callable[[Facts], object]:
    """Whether any such observation was made."""
    return lambda facts: any(getattr(facts.seen, name) for name in names)


_MISTAKES = _sees("mistaken_calls")
_ACTIVITIES = _sees("activities")

_ASKS: dict[str, Callable[[Facts], object]] = {
    "derivative": _sees("functions"),
    "errors": _sees("failure", "changes"),
    "loop/clip_misplaced": _MISTAKES,
    "loop/gradient_altered": _sees("alterations"),
    "loop/gradients_accumulate": lambda facts: any(step.reused for step in facts.seen.steps),
    "loop/growing_graph": _sees("carried"),
    "loop/loss_broadcasts": _sees("broadcasts"),
    "loop/stale_graph": _MISTAKES,
    "missing/step_changes_nothing": _sees("effects"),
    "ranks": lambda facts: facts.report.ranks is not None,
    "sizes/dead_units": _ACTIVITIES,
    "sizes/saturated_activation": _ACTIVITIES,
    "values": Facts.has_nonfinite,
}
"""What a run must have for the rules in a folder, or for one alone, to find anything; those that
are not here are asked about every run.  Most runs need no more than half of all rules."""


@cache
def _rules_in(module: str) -> tuple[Rule, ...]:
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
    rules = tuple(kind() for kind in kinds)
    for rule, kind in zip(rules, kinds, strict=True):
        if not _CODE.fullmatch(getattr(rule, "code", "")):
            raise ValueError(f"the code of {kind.__name__} is not GS and three to five digits")
        if not _NAME.fullmatch(getattr(rule, "name", "")):
            raise ValueError(f"the name of {rule.code} is not of small letters and -")
        if not set(rule.before.values()) <= set(get_args(Agreement)):
            raise ValueError(f"{rule.code}: before takes one of {', '.join(get_args(Agreement))}")
    return rules


def _put(rules: dict[str, Rule], module: str) -> None:
    for rule in _rules_in(module):
        for other in rules.values():
            if rule.code == other.code or rule.name == other.name:
                place = type(other).__module__
                raise ValueError(f"{rule.code} {rule.name} has its code or name from {place}")
        rules[rule.code] = rule


@cache
def _places() -> list[tuple[str, str]]:
    """The folder and the name of the file of each rule of ours."""
    files = sorted(_FOLDER.glob("[!q]*/[!_]*.py"))
    return [(path.parent.name, path.stem) for path in files]


class Register(Mapping[str, Rule]):
    """The rules by code, and in that order; imported when one is asked for first.

    ``brought`` are the rules of other packages.
    """

    def __getitem__(self, code: str) -> Rule:
        return (self._own | self.brought)[code]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._own | self.brought))

    def __len__(self) -> int:
        return len(self._own | self.brought)

    @property
    def brought(self) -> dict[str, Rule]:
        """The rules of other packages."""
        return self._found[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with those that other packages bring."""
        return self._found[1]

    def about(self, facts: Facts) -> list[Rule]:
        """The rules that may find something in a report, by code; no other is imported."""
        found = list(self.brought.values())
        for chapter, name in _places():
            asked = _ASKS.get(chapter) or _ASKS.get(f"{chapter}/{name}")
            if asked is None or asked(facts):
                found += _rules_in(f"{_PACKAGE}.{chapter}.{name}")
        return sorted(found, key=attrgetter("code"))

    @cached_property
    def _own(self) -> dict[str, Rule]:
        rules: dict[str, Rule] = {}
        for chapter, name in _places():
            _put(rules, f"{_PACKAGE}.{chapter}.{name}")
        return rules

    @cached_property
    def _found(self) -> tuple[dict[str, Rule], tuple[str, ...]]:
        entries = sorted(entry_points(group="gradscope.rules"), key=attrgetter("name"))
        if not entries:
            return {}, ()
        rules, problems = dict(self._own), []
        for entry in entries:
            try:
                _put(rules, entry.module)
            except Exception as error:
                let_pass(error)
                package = entry.dist.name if entry.dist is not None else entry.module
                said = f"{type(error).__name__}: {error}"
                problems.append(f"the rule {entry.name} of {package} cannot be used: {said}")
        return {code: rules[code] for code in rules.keys() - self._own.keys()}, tuple(problems)


RULES = Register()


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
    if code in REMOVED:
        what = f"rule {code} was removed in version {REMOVED[code]}"
        raise TargetError(what, f"take it out of {source}" if source else more)
    known = {name.lower(): rule for rule in RULES.values() for name in (rule.code, rule.name)}
    if word.lower() in known:
        return known[word.lower()]
    near = get_close_matches(word.lower(), known, n=1, cutoff=0.75)
    meant = f"did you mean {known[near[0]].code} {known[near[0]].name}? " if near else ""
    raise TargetError(f"unknown rule {word}", f"{meant}{more}")


_COMMENT = re.compile(r"#\s*gradscope:\s*ignore\s+(GS\w+(?:\s*,\s*GS\w+)*)", re.ASCII | re.I)
_CELL = re.compile(r"In\[(\d{1,9})\]", re.ASCII)
_IGNORED = re.compile(r"GS\w+", re.ASCII | re.I)

LARGEST = 10 * 2**20
"""Bytes of a file that is looked at; no person has written more."""

Comments = dict[int, set[str]]


class IgnoredByComment:
    """The comments in the files that findings name, each file read once.

    ``unknown`` are notes of codes in them that are those of no rule.
    """

    def __init__(self, folder: str) -> None:
        """``folder`` is where the files of findings are, if not named in full."""
        self._folder = Path(folder)
        self._files: dict[str, Comments] = {}
        self.unknown: list[str] = []

    def kept(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings that no comment takes back."""
        return tuple(one for one in findings if not self._is_ignored(one))

    def _is_ignored(self, finding: Finding) -> bool:
        place = finding.location
        if place is None:
            return False
        if place.file not in self._files:
            self._files[place.file] = self._read(place.file)
        return finding.rule in self._files[place.file].get(place.line, ())

    def _read(self, file: str) -> Comments:
        cell = _CELL.fullmatch(file)
        content = _typed(int(cell[1])) if cell else self._content(file)
        if b"gradscope" not in content:
            return {}
        found = dict(_comments(content))
        for line, codes in found.items():
            self.unknown += (
                f"{file}:{line}: {_unknown(code)}" for code in sorted(codes - RULES.keys())
            )
        return found

    def _content(self, file: str) -> bytes:
        try:
            path = self._folder / file
            # A saved report is foreign, and may name a pipe that nobody writes into.
            is_small = path.is_file() and path.stat().st_size <= LARGEST
            return path.read_bytes() if is_small else b""
        except (OSError, ValueError):
            return b""


def _unknown(code: str) -> str:
    """What is wrong with a code that no rule has."""
    try:
        return find_rule(code, "gradscope rule lists them all", "the comment").code
    except TargetError as error:
        return f"in a comment: {'; '.join((error.what, *error.hints))}"


def _typed(number: int) -> bytes:
    """What was typed into a cell of the shell that runs, with the magic above it."""
    try:
        shell = sys.modules["IPython"].get_ipython()
        return str(shell.history_manager.input_hist_raw[number]).encode()
    except Exception:  # no IPython, no shell, no such cell, or a shell of another make
        return b""


def _comments(content: bytes) -> Iterator[tuple[int, set[str]]]:
    """The lines that have such a comment, with the codes in it; strings are no comments."""
    try:
        for token in tokenize.tokenize(io.BytesIO(content).readline):
            match = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if match is not None:
                yield token.start[0], {code.upper() for code in _IGNORED.findall(match[1])}
    except (SyntaxError, tokenize.TokenError):  # what is no program has no comments
        return
