"""From a block that the doctor watched to what a test's report says of it."""

from __future__ import annotations

from gradscope.api import Finding, Run
from gradscope.diagnose import at_least
from gradscope.errors import GradscopeError, NoGraph
from gradscope.testing.told import Examined


def examined(run: Run) -> Examined | None:
    """What was found; None where the test made no backward call."""
    try:
        report = run.report()
    except NoGraph:
        return None
    except GradscopeError as error:
        return Examined(problem=error.what)
    seen = report.observations
    if seen is None or not seen.calls:
        return None
    findings = [one for one in report.findings if one.severity != "information"]
    return Examined(
        calls=seen.calls,
        findings=tuple(map(_line, findings)),
        text="\n\n".join(map(str, report.findings)),
        is_failure=at_least(findings, "warning"),
    )


def _line(finding: Finding) -> str:
    place = f"{finding.location}: " if finding.location else ""
    return f"{place}{finding.rule} {finding.message}"
