"""From parsed options to a finished run: the target, the session, the output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradscope.cli import memory, terminal
from gradscope.cli.messages import tell_error
from gradscope.cli.options import target_from
from gradscope.cli.output import Output
from gradscope.cli.result import Result
from gradscope.errors import GradscopeError, NoGraph
from gradscope.target import Program, Target

if TYPE_CHECKING:
    from gradscope.capture.request import Request
    from gradscope.capture.session import Outcome
    from gradscope.report import Report


def run_command(options: dict[str, Any], gradients: bool, arguments: tuple[str, ...]) -> Result:
    """The whole of ``trace`` and ``backward``.

    Raises:
        GradscopeError: before the program ran; afterwards errors are said here, because the
        program's
            own exit status may come first.
    """
    from gradscope.capture import request as requests
    from gradscope.capture.session import run

    target = target_from(options, arguments)
    output = Output.take(options)
    if target is None:
        target = remembered_target(arguments)
        output.remark(f"running {target.describe()} again")
    program = Program.prepare(target)
    memory.remember(target)
    request = requests.Request(gradients=gradients, **options)
    with terminal.stdout_reserved(output.is_machine_readable):
        outcome = run(target, program, request)
        outcome.ending.show()
    return _conclude(outcome, output, request)


def remembered_target(arguments: tuple[str, ...]) -> Target:
    """The target run last in this directory, with these arguments if there are any.

    Raises:
        TargetError: when none was run here.
    """
    target = memory.recall()
    if not arguments:
        return target
    return Target(target.kind, target.text, arguments, target.lets)


def _conclude(outcome: Outcome, output: Output, request: Request) -> Result:
    error = outcome.error
    if outcome.report is not None:
        error = _deliver(outcome, output, outcome.report)
    if error is None:
        return Result(ending=outcome.ending)
    if isinstance(error, NoGraph) and output.to_stdout and not request.gradients:
        # Nothing was asked for that could not be given: a remark, and the program's own status.
        output.remark(error.what)
        output.remark(error.hint)
        return Result(ending=outcome.ending)
    tell_error(error)
    return Result(0 if outcome.ending.status else error.status, outcome.ending)


def _deliver(outcome: Outcome, output: Output, report: Report) -> GradscopeError | None:
    """Write the report; whatever prevents that comes back to be told after it."""
    if outcome.ending.exception is not None and not output.to_stdout:
        for note in report.notes:
            output.remark(note)
    try:
        output.write(report)
    except GradscopeError as error:
        return error
    return None
