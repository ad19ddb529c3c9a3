"""What was found in a test, as plain data, and all of them in words.

Knows nothing of pytest, and imports nothing that is large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gradscope.words import count


@dataclass(frozen=True)
class Examined:
    """One test.

    ``calls`` is the number of backward calls that were watched; ``findings`` has a line for each,
    and ``text`` all of them in full; ``is_failure``: one is at least a warning; ``problem`` says
    why the test was not examined.
    """

    calls: int = 0
    findings: tuple[str, ...] = ()
    text: str = ""
    is_failure: bool = False
    problem: str = ""

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "findings": list(self.findings)}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Examined:
        return cls(**{**data, "findings": tuple(data["findings"])})


def in_words(found: Mapping[str, Examined]) -> Iterable[str]:
    """The lines of the summary: each finding with its test, and how many tests were examined."""
    for test, one in found.items():
        yield from (f"{line}  ({test})" for line in one.findings)
    examined = [one for one in found.values() if not one.problem]
    calls, findings = sum(one.calls for one in examined), sum(len(one.findings) for one in examined)
    yield (
        f"{count(calls, 'backward call')} in {count(len(examined), 'test')} examined, "
        f"{count(findings, 'finding')}"
    )
    problems = Counter(one.problem for one in found.values() if one.problem)
    for problem, times in problems.items():
        yield f"{count(times, 'test')} not examined: {problem}"
