"""What pytest calls: options, the fixture, and a look at every test where ``--gradscope`` is given.

The code of the user's test runs inside of a block that the doctor watches; what is found there is
the failure of a test that passes otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from gradscope.testing.told import Examined, in_words

if TYPE_CHECKING:
    from gradscope.testing.fixture import Gradients

_EXAMINED = "gradscope_examined"
"""The attribute of a test's report that tells of it; plain data, which pytest-xdist sends on."""

_MARK = (
    "gradscope(ignore=[...]): rules of gradscope that stay silent in this test, by code or name, "
    "such as GS205"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line, and the one of the settings."""
    group = parser.getgroup("gradscope", "gradients of PyTorch")
    group.addoption(
        "--gradscope",
        action="store_true",
        help="Examine every backward call of every test; what is wrong with a gradient fails it.",
    )
    group.addoption(
        "--gradscope-ignore",
        action="append",
        default=[],
        metavar="RULE",
        help="Leave out a rule, by code or name; may be repeated.",
    )
    group.addoption(
        "--gradscope-update",
        action="store_true",
        help="Write the files that gradscope.assert_same compares with anew.",
    )
    parser.addini("gradscope_ignore", "Rules of gradscope that are left out.", type="args")


def pytest_configure(config: pytest.Config) -> None:
    """The mark of single tests; names of rules that do not exist are misuse."""
    config.addinivalue_line("markers", _MARK)
    words = _left_out(config)
    if words:
        from gradscope.errors import GradscopeError
        from gradscope.rules import find_rule

        try:
            for word in words:
                find_rule(word, source="--gradscope-ignore, or gradscope_ignore")
        except GradscopeError as error:
            raise pytest.UsageError(f"gradscope: {error}") from None


def _left_out(config: pytest.Config) -> list[str]:
    return [*config.getoption("gradscope_ignore"), *config.getini("gradscope_ignore")]


def _ignored(item: pytest.Item) -> list[str]:
    """The codes of the rules that stay silent in a test; a mark that names none fails it."""
    from gradscope.api.looking import codes
    from gradscope.errors import GradscopeError

    found, problem = [*codes(_left_out(item.config))], ""
    for mark in item.iter_markers("gradscope"):
        if mark.args or mark.kwargs.keys() - {"ignore"}:
            problem = "it takes ignore=[...] and nothing else"
        try:
            found += codes(mark.kwargs.get("ignore", ()))
        except (TypeError, GradscopeError) as error:
            problem = str(error)
    if problem:
        pytest.fail(f"the mark gradscope of this test: {problem}", pytrace=False)
    return found


@pytest.fixture
def gradscope(request: pytest.FixtureRequest) -> Iterator[Gradients]:
    """Assertions on gradients; what the test computes meanwhile is told with its lines."""
    try:
        import torch  # noqa: F401
    except ImportError:
        pytest.fail("the fixture gradscope needs torch: pip install torch", pytrace=False)
    from gradscope.api import record
    from gradscope.testing.fixture import Gradients

    node = request.node
    with record(doctor=True, ignore=_ignored(node)) as run:
        yield Gradients(run, node.path.parent, node.config.getoption("gradscope_update"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """With ``--gradscope``, watch the test."""
    if not item.config.getoption("gradscope"):
        return (yield)
    if "torch" not in sys.modules:
        result = yield
        if "torch" in sys.modules:
            _keep(item, Examined(problem="torch was not imported when it began"))
        return result
    from gradscope.api.recording import RecordedBlock
    from gradscope.testing.fixture import examined

    block, run = RecordedBlock(True, False, False, _ignored(item), as_test=True), None
    try:
        with block as run:
            result = yield
    except BaseException:
        # The test's own failure is shown as it is, and what was found beside it.
        if run is not None and (found := examined(run)) is not None:
            _keep(item, found)
            if found.text:
                item.add_report_section("call", "gradscope", found.text)
        raise
    found = examined(run)
    if found is not None:
        _keep(item, found)
        # Whether it counts as a failure that one is marked for, only its report says.
        if found.is_failure and item.get_closest_marker("xfail") is None:
            pytest.fail(found.text, pytrace=False)
    return result


def _keep(item: pytest.Item, found: Examined) -> None:
    item.stash[_STASHED] = found


_STASHED = pytest.StashKey[Examined]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what was found into the test's report.

    A finding is not what a test is marked to fail with: one that passes against its mark is told as
    that, and one whose mark does not hold fails by it.
    """
    report = yield
    found = item.stash.get(_STASHED, None)
    if found is not None and call.when == "call":
        setattr(report, _EXAMINED, found.plain())
        if found.is_failure and report.passed and not hasattr(report, "wasxfail"):
            report.outcome, report.longrepr = "failed", found.text
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """What all tests together had."""
    if not config.getoption("gradscope"):
        return
    every = (report for reports in terminalreporter.stats.values() for report in reports)
    found = {
        report.nodeid: Examined.of(getattr(report, _EXAMINED))
        for report in every
        if hasattr(report, _EXAMINED)
    }
    terminalreporter.section("gradscope")
    for line in in_words(found):
        terminalreporter.line(line)
