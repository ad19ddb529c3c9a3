"""The register of rules: code, name, and the function that looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gradscope.observations import Finding
from gradscope.report import Report


@dataclass(frozen=True)
class Rule:
    """One thing that can be wrong.

    ``check`` gives the findings of a report; they need carry neither code nor name, which are
    filled in.
    """

    code: str
    name: str
    check: Callable[[Report], Iterable[Finding]]


RULES: dict[str, Rule] = {}
