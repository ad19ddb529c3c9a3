"""A whole run: the program is started as python would, watched, and turned into one Report.

The only room that puts targets and capture together.  Knows nothing of formats or of the command
line. torch is imported when the program imports it, not before.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec

from gradscope.capture.request import Request
from gradscope.errors import GradscopeError, NoGraph
from gradscope.report import Report
from gradscope.target import Ending, Program, Target

if TYPE_CHECKING:
    from gradscope.capture.exam.examiner import Examiner
    from gradscope.capture.exam.request import Examination
    from gradscope.capture.watcher import Watcher


@dataclass
class Outcome:
    """How it went: a report, or the reason why there is none; and how the program itself ended."""

    ending: Ending
    report: Report | None = None
    error: GradscopeError | None = None


def run(target: Target, program: Program, request: Request) -> Outcome:
    """Run a prepared program under a recorder and answer the request.

    Raises:
        GradscopeError: when the target turns out not to be runnable, or a ``--let`` is wrong.
    """
    # A list, because it is filled in the middle of the program, when torch has been imported.
    watchers: list[Watcher] = []

    def on_torch() -> None:
        watchers.append(_start_watching(target, program, request))

    try:
        ending = program.run(before=_code_namespace(target), on_torch=on_torch)
    finally:
        for watcher in watchers:
            watcher.recorder.stop()
    if not watchers:
        return Outcome(ending, error=None if ending.exception else _no_torch())
    return _with_target(_finish(watchers[0], ending), target)


def _with_target(outcome: Outcome, target: Target) -> Outcome:
    if outcome.report is not None:
        described = msgspec.structs.replace(outcome.report.meta, target=target.describe())
        outcome.report = msgspec.structs.replace(outcome.report, meta=described)
    return outcome


def examine(target: Target, program: Program, examination: Examination) -> Outcome:
    """Run a prepared program under a doctor's eyes; the report carries observations.

    Raises:
        GradscopeError: when the target turns out not to be runnable, or a ``--let`` is wrong.
    """
    examiners: list[Examiner] = []

    def on_torch() -> None:
        module = importlib.import_module("gradscope.capture.exam.examiner")
        examiners.append(module.Examiner(examination, _sources(target, program)))
        examiners[0].recorder.start()

    try:
        ending = program.run(before=_code_namespace(target), on_torch=on_torch)
    finally:
        for examiner in examiners:
            examiner.recorder.stop()
    if not examiners:
        return Outcome(ending, error=None if ending.exception else _no_torch())
    examiner = examiners[0]
    failure = ending.exception if not isinstance(ending.exception, SystemExit) else None
    frames = list(_frames_of(failure)) if failure is not None else []
    examiner.finish(ending.namespace, ending.value, failure, frames)
    if examiner.report is None and examiner.fault is not None:
        raise examiner.fault
    return _with_target(Outcome(ending, examiner.report, examiner.error), target)


def _start_watching(target: Target, program: Program, request: Request) -> Watcher:
    # Imported here and not above: these modules import torch, and this runs once the program has.
    watcher_module = importlib.import_module("gradscope.capture.watcher")
    watcher: Watcher = watcher_module.Watcher(request, _sources(target, program))
    watcher.recorder.start()
    return watcher


def _sources(target: Target, program: Program) -> Any:
    module = importlib.import_module("gradscope.capture.source")
    texts = {}
    if target.kind in ("code", "stdin"):
        texts = {"<string>" if target.kind == "code" else "<stdin>": program.source}
    return module.Sources(texts)


def _finish(watcher: Watcher, ending: Ending) -> Outcome:
    failed = ending.exception is not None and not isinstance(ending.exception, SystemExit)
    if failed and ending.exception is not None:
        frames = list(_frames_of(ending.exception))
        watcher.finish_failed(frames, _failure_sentence(ending.exception))
        if "does not require grad" in str(ending.exception):
            watcher.error = watcher.error or watcher.explain_refusal(frames)
    else:
        watcher.finish(ending.namespace, ending.value)
    if watcher.failure is not None:
        raise watcher.failure
    return Outcome(ending, watcher.report, watcher.error)


def _frames_of(error: BaseException) -> Iterator[FrameType]:
    """The frames of a traceback, innermost first."""
    frames = []
    step = error.__traceback__
    while step is not None:
        frames.append(step.tb_frame)
        step = step.tb_next
    return reversed(frames)


def _failure_sentence(error: BaseException) -> str:
    return (
        f"the program ended with {type(error).__name__}; "
        "this is the graph of the last result it had made by then"
    )


def _no_torch() -> NoGraph:
    return NoGraph(
        "no autograd graph: the program did not import torch",
        "point gradscope at a PyTorch program",
    )


def _code_namespace(target: Target) -> Any:
    """What fills the namespace of ``-c`` code: torch and its functions, and the ``--let``
    leaves."""
    if target.kind != "code":
        return None

    def fill(namespace: dict[str, Any]) -> None:
        scope = importlib.import_module("gradscope.capture.scope")
        scope.fill(namespace, target.lets)

    return fill
