"""A block of a running program, watched by the doctor: ``with gradscope.record(doctor=True)``.

The block is never stopped, and nothing of ours raises into it: whatever goes wrong here is told
when its report is asked for.
"""

from __future__ import annotations

import threading
from types import FrameType

import msgspec

from gradscope.analyses.doctor.doctor import Doctor
from gradscope.errors import CaptureError, Fault, GradscopeError, NoGraph, described
from gradscope.garbage import collector_paused
from gradscope.model.report import Report
from gradscope.model.request import Examination
from gradscope.recording.recorder import Recorder
from gradscope.running.session import frames_of
from gradscope.target import StopProgram


class WatchedBlock:
    """One such block.

    Args:
        examination: how closely it is watched; its limits must not stop it.
        frame: the function that the block is in.
    """

    def __init__(self, examination: Examination, frame: FrameType) -> None:
        self._doctor: Doctor | None = None
        self._problem: GradscopeError | None = None
        self._note = ""
        self._frame: FrameType | None = frame
        self._examination = examination

    @property
    def doctor(self) -> Doctor | None:
        """Who watches it; None where nobody could."""
        return self._doctor

    @property
    def recorder(self) -> Recorder | None:
        """What is known of the calls in it."""
        return self._doctor.recorder if self._doctor else Recorder.active

    def begin(self) -> None:
        """The block begins."""
        active = Recorder.active
        if active is not None and active.thread != threading.get_ident():
            self._problem = CaptureError(
                "this block was not watched: another thread was being recorded when it began, and "
                "only one thread is recorded at a time",
                "record in one thread, or in one after the other",
            )
            return
        try:
            with collector_paused():
                self._doctor = Doctor(self._examination, active=active)
                self._doctor.start()
        except Exception as error:
            self._fail(error)

    def end(self, error: BaseException | None) -> None:
        """The block has ended, by an exception or not."""
        frame, self._frame = self._frame, None
        doctor = self._doctor
        if doctor is None or frame is None:
            return
        try:
            doctor.stop()
            # Who calls sys.exit has ended as intended, and so has who is stopped by us.
            failure = None if isinstance(error, (SystemExit, StopProgram)) else error
            frames = list(frames_of(failure)) if failure is not None else []
            with collector_paused():
                doctor.finish({**frame.f_globals, **frame.f_locals}, None, failure, frames)
            if isinstance(failure, Exception):
                self._note = f"the block ended with {described(failure)}"
        except Exception as problem:
            self._fail(problem)

    def _fail(self, error: Exception) -> None:
        self._problem = Fault.of(error)
        if self._doctor is not None:
            self._doctor.stop()
            self._doctor = None

    def report(self) -> Report:
        """What was seen.

        Raises:
            GradscopeError: the block has not ended; it could not be watched; or it has left nothing
                to be examined.
        """
        if self._problem is not None:
            raise self._problem
        if self._frame is not None or self._doctor is None:
            raise CaptureError(
                "the block has not ended: what it did last is a part of the answer",
                "ask after the `with` block; inside of it, run.doctor(loss) examines one graph",
            )
        found, error = self._doctor.report, self._doctor.error
        if isinstance(error, NoGraph):
            raise NoGraph(
                error.what, "call backward inside of the block, in the thread that began it"
            )
        if found is None:
            raise error or Fault("internal error: the block left no report")
        notes = (*found.notes, self._note) if self._note else found.notes
        return msgspec.structs.replace(found, notes=notes)
