"""Adds up what tests have counted and noted by ``record_property``, as the rows of a table in the
docs; a ``conftest.py`` takes the hook over."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sums below the results, in the order in which they were first noted."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        for word, count in report.user_properties:
            counts[word] += count
    if counts:
        terminalreporter.section("what was counted")
    for word, count in counts.items():
        terminalreporter.write_line(f"{word:32} {count:8,}")
