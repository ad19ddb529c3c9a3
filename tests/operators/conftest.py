"""Adds up what the tests have counted, as the rows of the table in docs/operators.md."""

from __future__ import annotations

from collections import Counter

import pytest

ORDER = ("operators", "cases", "nodes", "edges", "ways", "weights", "steps")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sums below the results."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        for word, count in report.user_properties:
            counts[word] += count
    if counts:
        terminalreporter.section("what was counted")
    for word in sorted(counts, key=lambda one: (one not in ORDER, one)):
        terminalreporter.write_line(f"{word:24} {counts[word]:8,}")
