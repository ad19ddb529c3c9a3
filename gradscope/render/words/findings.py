"""Findings in words: a head line for each, and the lines below it; and the parts of the page of a
rule: what it means, how it is recognised, a program that has it.

Used by the tree, which shows the head lines, and by the doctor, which shows all. Must not know how
findings are found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gradscope.escaping import visible
from gradscope.render.words.text import BADGES, worst, wrapped
from gradscope.words import count, one_line, ranked

if TYPE_CHECKING:
    from gradscope.model.observations import Finding, Severity

LONGEST = 70
"""Characters of an expression in a head line."""

_INDENT = 4


def head(finding: Finding, files: dict[str, str] | None = None) -> str:
    """``GS303 history-cut · warning · train.py:14 · x.detach() · encoder``, made visible."""
    words = [f"{finding.rule} {finding.name}".strip(), finding.severity]
    if finding.ranks:
        words.append(ranked(finding.ranks))
    if finding.location is not None:
        file = finding.location.file
        shown = (files or {}).get(file) or visible(file)
        words.append(f"{shown}:{finding.location.line}")
        words.append(_cut(visible(one_line(finding.location.expression))))
    words.append(_cut(visible(finding.subject)))
    return " · ".join(word for word in words if word)


def body(finding: Finding, width: int) -> Iterable[str]:
    """The message, the evidence, why, and what to do; wrapped and indented."""
    yield from paragraph(" " * _INDENT, finding.message, width)
    parts = [("seen", line) for line in finding.evidence]
    parts += [("why", finding.why), ("do", finding.remedy)]
    previous = ""
    for label, text in parts:
        if text:
            lead = f"{'' if label == previous else label:<6}"
            yield from paragraph(" " * _INDENT + lead, text, width)
            previous = label


def counted(findings: Sequence[Finding]) -> str:
    """``1 error, 2 warnings``."""
    parts = []
    for severity in BADGES:
        amount = sum(finding.severity == severity for finding in findings)
        # The one word for it, which has no plural.
        told = f"{amount:,} {severity}" if severity == "information" else count(amount, severity)
        parts += [told] if amount else []
    return ", ".join(parts) or "no findings"


def badges(findings: Sequence[Finding]) -> dict[int, Severity]:
    """For every node that a finding is about, the severity of the worst."""
    found: dict[int, Severity] = {}
    for finding in findings:
        if finding.node is not None:
            known = found.get(finding.node.id, finding.severity)
            found[finding.node.id] = worst((known, finding.severity)) or known
    return found


def paragraph(lead: str, text: str, width: int) -> list[str]:
    """A text that begins with ``lead`` and whose further lines stand below its first word."""
    lines = wrapped(visible(one_line(text)), width - len(lead))
    return [(" " * len(lead) if number else lead) + line for number, line in enumerate(lines)]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def alone(page: str) -> str:
    """A page for who has not the others: without its title, and without links to them."""
    _, _, rest = page.partition("\n")
    return _LINK.sub(r"\1", rest).strip() + "\n"


def sentence(page: str) -> str:
    """The paragraph below a page's title, which says in a sentence what is wrong; on one line."""
    return " ".join(alone(page).partition("\n\n")[0].split())
