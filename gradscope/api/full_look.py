"""A look at one backward call of a training that is watched, by the doctor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from gradscope.api.looking import diagnosed
from gradscope.errors import OutputError
from gradscope.filesystem import here
from gradscope.model.observations import Finding
from gradscope.model.rows import Row
from gradscope.running.block import OneCall

_OF_NUMBERS = ("GS1", "GS2", "GS6")
"""Rules about what is not finite, too large or too small, or wrong."""


class KeptLook(OneCall):
    """Begins when it is made; its report is kept beside a log, where there is one."""

    def __init__(
        self,
        log: Path | None,
        has_come: Callable[[], bool],
        done: Callable[[], None],
        rank: int = 0,
    ) -> None:
        super().__init__(has_come, done)
        self._log = log
        self._of_rank = f".rank{rank}" if rank else ""
        self._folder = here()

    def told(self, row: Row) -> tuple[str, str]:
        """The worst that was found in the numbers of the row's call, and the name of the report;
        each may be "".

        Raises:
            GradscopeError: there was nothing to be examined.
        """
        report = diagnosed(self.report(), (), self._folder)
        # The doctor, who has just come, calls it the first.
        passes = tuple(msgspec.structs.replace(one, number=row.call) for one in report.passes[:1])
        report = msgspec.structs.replace(report, passes=passes)
        finding = next(filter(None, map(_line, report.findings)), "")
        if self._log is None:
            return finding, ""
        name = f"{self._log.name.removesuffix('.jsonl')}.step-{row.step}{self._of_rank}.json.gz"
        try:
            report.save(self._log.with_name(name))
        except OutputError as error:
            return f"{finding} ({error.what})", ""
        return finding, name


def _line(finding: Finding) -> str:
    # What has no gradient, and what the loop does, is no answer to what has just happened.
    if finding.severity == "information" or not finding.rule.startswith(_OF_NUMBERS):
        return ""
    place = f"{finding.location}: " if finding.location else ""
    return f"{place}{finding.rule} {finding.message}"
