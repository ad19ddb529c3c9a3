"""A whole run: the program is started as python would, watched, and turned into one Report.

The only room that puts targets and capture together.  Knows nothing of formats or of the command
line. torch is imported when the program imports it, not before.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from traceback import walk_tb
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

import msgspec

from gradscope import doing
from gradscope.errors import CaptureError, GradscopeError, NoGraph
from gradscope.filesystem import here
from gradscope.handlers import collector_paused
from gradscope.model.report import Report
from gradscope.model.request import Request
from gradscope.ranks.member import ALONE, Member
from gradscope.target import Ending, OtherProcesses, Program, Target

if TYPE_CHECKING:
    from gradscope.analyses.doctor.doctor import Doctor
    from gradscope.model.request import Examination
    from gradscope.running.stopped import StoppedAt
    from gradscope.running.watcher import Watcher


@dataclass
class Outcome:
    """How it went: a report, or the reason why there is none; and how the program itself ended.

    ``stopped`` is where we ended it, if anything of it was left to run.
    """

    ending: Ending
    report: Report | None = None
    error: GradscopeError | None = None
    stopped: StoppedAt | None = None


def run(program: Program, asked: Request | Examination, member: Member = ALONE) -> Outcome:
    """Run a prepared program under a recorder and answer a request; or under a doctor's eyes, whose
    report carries observations.

    ``member`` is this process where it is one rank of several.

    Raises:
        GradscopeError: when the target turns out not to be runnable, or a ``--let`` is wrong.
    """
    # A list, because it is filled in the middle of the program, when torch has been imported.
    seers: list[Watcher | Doctor] = []
    target = program.target
    folder = here()  # where the user is: the program may go elsewhere
    stances: list[Any] = []
    others = OtherProcesses()

    @collector_paused()
    def on_torch() -> None:
        member.begin()
        if asked.eager:
            stances.append(_load("recording.compiler").Eager())
            stances[0].start()
        seers.append(_seer(asked, _sources(program, folder), member))
        recorder = seers[0].recorder
        # Of a file that holds the function that is meant, only what it defines is wanted.
        recorder.handlers.skip_while(lambda: program.ready.is_importing, recorder.let_run)
        recorder.start()

    try:
        doing.begin(asked.waits_for(0))
        ending = program.run(before=code_namespace(target), on_torch=on_torch)
    finally:
        for seer in seers:
            seer.recorder.stop()
        for stance in stances:
            stance.stop()
        member.program_has_ended()
    if others.is_this_one:
        return Outcome(ending)  # a forked child: what is to be said, its parent says
    try:
        doing.begin("making the report")
        outcome = (
            _finish(seers[0], ending, program, asked) if seers else _without_torch(ending, target)
        )
    except KeyboardInterrupt:
        # Who interrupts the program and then us does not want to wait for a report.
        if not ending.interrupted:
            raise
        return Outcome(ending)
    if isinstance(outcome.error, NoGraph) and others.have_run:
        outcome.error = NoGraph(
            "no autograd graph is left in this process, and what the program did in its child "
            "processes is not watched",
            "have the function that trains called in this process: 'FILE.py::FUNCTION(0, 1)'",
        )
    # One that has computed something and then leaves with a status is answered all the same.
    made_nodes = bool(seers) and seers[0].recorder.has_made_nodes
    if isinstance(ending.exception, SystemExit) and ending.status and not made_nodes:
        outcome.error = None  # it refused its arguments, say: it has said what is wrong
    if outcome.report is not None:
        outcome.report = outcome.report.of_target(target.describe())
    return outcome


def _load(room: str) -> Any:
    # Not imported above: these rooms import torch, and are needed once the program has.
    return importlib.import_module(f"gradscope.{room}")


def _sources(program: Program, folder: str) -> Any:
    file = {"code": "<string>", "stdin": "<stdin>"}.get(program.target.kind)
    texts = {} if file is None else {file: program.ready.source}
    return _load("recording.source").Sources(texts, folder, program.ready.codes)


def _seer(asked: Request | Examination, sources: Any, member: Member) -> Watcher | Doctor:
    is_look = isinstance(asked, Request)
    room = _load("running.watcher" if is_look else "analyses.doctor.doctor")
    seer: Watcher | Doctor = (room.Watcher if is_look else room.Doctor)(asked, sources, member)
    return seer


def _finish(
    seer: Watcher | Doctor, ending: Ending, program: Program, asked: Request | Examination
) -> Outcome:
    # Who calls sys.exit has ended as intended.
    failure = ending.exception if not isinstance(ending.exception, SystemExit) else None
    frames = list(frames_of(failure)) if failure is not None else []
    seer.finish(ending.namespace, ending.value, failure, frames)
    outcome = Outcome(ending, seer.report, seer.error)
    if isinstance(asked, Request):
        watcher = cast("Watcher", seer)
        stopped = watcher.stopped
        # What was stopped at its end was not cut short.
        if stopped and (not stopped.is_last or stopped.outermost in program.ready.followed):
            outcome.stopped = stopped
        _tell_other_threads(outcome, watcher)
    return outcome


def _tell_other_threads(outcome: Outcome, watcher: Watcher) -> None:
    """Say which backward calls nobody watched: one of them may have been meant."""
    told = watcher.recorder.elsewhere.told()
    if told and outcome.report is not None:
        notes = (*outcome.report.notes, told)
        outcome.report = msgspec.structs.replace(outcome.report, notes=notes)
    elif told and isinstance(outcome.error, CaptureError):
        outcome.error = type(outcome.error)(outcome.error.what, told, *outcome.error.hints)


def frames_of(error: BaseException) -> Iterator[FrameType]:
    """The frames of a traceback, innermost first."""
    return reversed([frame for frame, _ in walk_tb(error.__traceback__)])


def _without_torch(ending: Ending, target: Target) -> Outcome:
    # Who calls sys.exit has ended as intended.
    if ending.exception is not None and not isinstance(ending.exception, SystemExit):
        return Outcome(ending)
    if target.kind == "cell":
        return Outcome(ending, error=NoGraph("no autograd graph: torch has not been imported"))
    return Outcome(ending, error=no_torch("no autograd graph"))


def no_torch(what: str) -> NoGraph:
    """Why there is nothing to see of a program: no import of torch was seen."""
    if "torch" in sys.modules:
        return NoGraph(
            f"{what}: the program loads torch in a way of its own, which cannot be followed",
            "call gradscope in the program: with gradscope.record(doctor=True) as run: ...",
        )
    return NoGraph(
        f"{what}: the program did not import torch", "point gradscope at a PyTorch program"
    )


def code_namespace(target: Target) -> Any:
    """What fills the namespace of ``-c`` code: torch and its functions, and the ``--let``
    leaves."""
    if target.kind != "code":
        return None

    def fill(namespace: dict[str, Any]) -> None:
        _load("graphing.initial_gradient").fill(namespace, target.lets)

    return fill
