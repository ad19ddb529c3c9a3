"""The doctor in the middle of a running program: for a block, ``with
gradscope.record(doctor=True)``, or for one backward call, after which it goes again.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from traceback import walk_stack
from types import FrameType
from typing import Any

import msgspec
import torch
from torch import nn

from gradscope.analyses.doctor.doctor import Doctor
from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.isolation import put_under, take_out
from gradscope.errors import CaptureError, Fault, GradscopeError, NoGraph, described
from gradscope.handlers import collector_paused
from gradscope.model.report import Report
from gradscope.model.request import Examination
from gradscope.patched import Original
from gradscope.recording.recorder import Recorder
from gradscope.recording.stand_in import module_calls
from gradscope.running.session import frames_of
from gradscope.target import StopProgram


class WatchedBlock:
    """One such block.

    Args:
        examination: how closely it is watched; its limits must not stop it.
        frame: the function that the block is in.
    """

    def __init__(self, examination: Examination, frame: FrameType) -> None:
        self.doctor: Doctor | None = None
        """Who watches it; None where nobody could."""
        self._problem: GradscopeError | None = None
        self._note = ""
        self._frame: FrameType | None = frame
        self._examination = examination

    @property
    def recorder(self) -> Recorder | None:
        """What is known of the calls in it."""
        return self.doctor.recorder if self.doctor else Recorder.active

    def begin(self) -> None:
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
                self.doctor = Doctor(self._examination, active=active)
                self.doctor.start()
        except Exception as error:
            self._fail(error)

    def end(self, error: BaseException | None) -> None:
        frame, self._frame = self._frame, None
        doctor = self.doctor
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
        if self.doctor is not None:
            self.doctor.stop()
            self.doctor = None

    def report(self) -> Report:
        """What was seen.

        Raises:
            GradscopeError: the block has not ended; it could not be watched; or it has left nothing
                to be examined.
        """
        if self._problem is not None:
            raise self._problem
        if self._frame is not None or self.doctor is None:
            raise CaptureError(
                "the block has not ended: what it did last is a part of the answer",
                "ask after the `with` block; inside of it, run.doctor(loss) examines one graph",
            )
        found, error = self.doctor.report, self.doctor.error
        if isinstance(error, NoGraph):
            raise NoGraph(
                error.what, "call backward inside of the block, in the thread that began it"
            )
        if found is None:
            raise error or Fault("internal error: the block left no report")
        notes = (*found.notes, self._note) if self._note else found.notes
        return msgspec.structs.replace(found, notes=notes)


class OneCall:
    """Watches this thread from now on until a backward call of which ``has_come`` says that it was
    the one; then calls ``done``."""

    def __init__(self, has_come: Callable[[], bool], done: Callable[[], None]) -> None:
        self.is_inside = False
        self._has_come = has_come
        self._done = done
        self._thread = threading.get_ident()
        self._is_own = Recorder.active is None
        self._next = module_calls(self._taking_away)
        # Our own frame: to hold one of the program's would keep its batch alive.
        self._block = WatchedBlock(
            Examination(keep_going=True, thorough=True, as_test=True), sys._getframe()
        )
        self._block.begin()
        if self._block.doctor is not None:
            self._recorder = self._block.doctor.recorder
            self._recorder.handlers.add(self._on_backward)
            if self._is_own:
                # The program may leave a mode that it has entered before.
                put_under(self._recorder)
            _here.append(self)

    def _on_backward(self, call: BackwardCall) -> Any:
        self.is_inside = True
        try:
            return call.run()
        finally:
            self.is_inside = False
            if self._has_come():
                self.end()
                if self._is_own:
                    # Torch, which has called the recorder, puts it back when this returns; it can
                    # only be taken away between two calls.
                    self._next.start()
                self._done()

    def _taking_away(self, original: Original) -> Original:
        def _call_impl(module: nn.Module, /, *args: Any, **kwargs: Any) -> Any:
            # What is compiled is to hold no call of ours: the next one that is not will do.
            if not torch.compiler.is_compiling():
                self.tidy()
            return original(module, *args, **kwargs)

        return _call_impl

    def tidy(self) -> bool:
        """Take away what is left of a look that is over; returns whether nothing is, for that takes
        the same thread, and no call of torch around this one."""
        if not self._next.is_started or threading.get_ident() != self._thread:
            return self not in _here
        if take_out(self._recorder) is None and _is_in_a_call():
            return False
        self._next.stop()
        return True

    def end(self) -> None:
        """Watch no longer, where this is the same thread; in no hook of an optimizer, as torch does
        not bear that their number changes meanwhile."""
        if self in _here and threading.get_ident() == self._thread:
            _here.remove(self)
            self._recorder.handlers.remove(self._on_backward)
            self._block.end(None)

    def leave_child(self) -> None:
        """This is a process that was forked while it watched, and where nobody will ask."""
        if self._block.doctor is not None:
            self._block.doctor.stop()

    def report(self) -> Report:
        """What was seen.

        Raises:
            GradscopeError: nothing could be.
        """
        return self._block.report()


def _is_in_a_call() -> bool:
    """Whether a recorder has a call of torch made, and is put back when that returns."""
    handled = Recorder.__torch_function__.__code__
    return any(frame.f_code is handled for frame, _ in walk_stack(sys._getframe()))


_here: list[OneCall] = []
"""Those that watch now."""


def _leave_child() -> None:
    while _here:
        _here.pop().leave_child()


# A worker that loads data would be watched for as long as it lives.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_child)
