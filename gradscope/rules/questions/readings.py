"""How errors of torch's are read: a part of their text, and what to say about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from gradscope.model.observations import Failure
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.words import first_line


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
