"""How a finding is made in words that the rule brings: of an error of torch's, by a part of its
text; or of a call that torch takes as it is, and that does not do what it was written for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

from gradscope.model.observations import Failure, MistakeKind, MistakenCall
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule
from gradscope.words import count, first_line

FEWEST = 2
"""Times that calls of a training loop are seen out of order, before that is called a mistake."""


class MistakeWords(NamedTuple):
    """What is said of one, with its expression, other place and numbers filled in."""

    message: str
    evidence: str
    why: str
    remedy: str
    otherwise: str = ""
    """What ``{beside}`` is where that place is not known."""
    fewest: int = 1
    """How often it is seen before it is told."""
    never_fine: bool = False
    """Whether the call may never have been as it should be."""


class MistakeRule(Rule):
    """A rule about calls that torch takes as they are; ``words`` says what of which."""

    words: ClassVar[Mapping[MistakeKind, MistakeWords]]

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        """The findings on what was seen of these kinds; a line is told of one thing once."""
        told: set[tuple[str, int, str] | None] = set()
        for entry in facts.seen.mistaken_calls:
            said = self.words.get(entry.kind)
            if said is None or entry.times < said.fewest:
                continue
            at = facts.location(entry.origin)
            line = (at.file, at.line, said.message) if at else None
            if line in told:
                continue
            if not (said.never_fine and entry.fine) and not self.is_explained(facts, entry):
                told.add(line)
                yield _told(facts, entry, said)

    def is_explained(self, facts: Facts, entry: MistakenCall) -> bool:  # noqa: ARG002
        """Whether nothing need be said of one, for what else is known."""
        return False


def _told(facts: Facts, entry: MistakenCall, said: MistakeWords) -> FindingDraft:
    named = {
        "this": facts.expression(entry.origin) or "This",
        "times": count(entry.times, "time"),
        "parameters": count(entry.parameters, "parameter"),
        "beside": facts.placed(entry.other, said.otherwise),
    }
    return facts.warning(
        said.message.format(**named),
        location=facts.location(entry.origin),
        evidence=said.evidence.format(**named),
        why=said.why,
        remedy=said.remedy,
    )


class ErrorReading(NamedTuple):
    """How an error of torch's is read: a part of its text, and what to say about it."""

    text: str
    message: str
    why: str
    remedy: str


def read(facts: Facts, readings: Iterable[ErrorReading]) -> Iterable[tuple[Failure, FindingDraft]]:
    """The failure, if one of these is what torch said, with a finding on it."""
    failure = facts.seen.failure
    for reading in readings:
        if failure is not None and re.search(reading.text, failure.message):
            yield failure, _explained(facts, failure, reading)
            return


def _explained(facts: Facts, failure: Failure, reading: ErrorReading) -> FindingDraft:
    """A failure in these words, at its place."""
    first = first_line(failure.message)
    return facts.finding(
        "error",
        reading.message,
        location=facts.location(failure.origin),
        subject=facts.variable(failure.origin),
        evidence=f"{failure.type}: {first[:300]}",
        why=reading.why,
        remedy=reading.remedy,
        fails=True,
    )
