"""A block of code that is recorded, and what can be asked about it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from gradscope.api.keywords import public
from gradscope.api.looking import Looks, codes
from gradscope.api.report import Report
from gradscope.errors import CaptureError
from gradscope.filesystem import here
from gradscope.model.request import Check
from gradscope.rules import diagnosed
from gradscope.target import clean
from gradscope.words import in_python

if TYPE_CHECKING:
    from gradscope.analyses.doctor.listener import DoctorListener
    from gradscope.model.observations import Finding
    from gradscope.recording.listener import Listener
    from gradscope.recording.recorder import Recorder
    from gradscope.running.block import WatchedBlock


class Run(Looks):
    """A block of code that was recorded, made by :func:`record`.

    Its methods ``trace``, ``backward``, ``explain``, ``check``, ``memory`` and ``doctor`` are the
    functions of these names, for a tensor made in the block: with the lines that made it.
    ``check`` needs ``record(check=True)``; ``doctor`` does without ``doctor=True``, but with it
    what was seen of the forward pass counts as well."""

    def __init__(
        self,
        recorder: Recorder | None,
        tape: Listener | None,
        block: WatchedBlock | None,
        ignored: Collection[str],
    ) -> None:
        self._recorder = recorder
        self._tape = tape
        self._block = block
        self._ignored = ignored
        self._folder = here()
        self._report: Report | None = None

    def __repr__(self) -> str:
        asked = "" if self._block is None else "; .report(), .findings"
        return f"<Run of gradscope.record(){asked}>"

    def _heard(self) -> DoctorListener | None:
        return self._block.doctor.listener if self._block and self._block.doctor else None

    @public
    def report(self) -> Report:
        """What ``gradscope doctor`` would say of the block: one of its backward calls, that which
        matters most, with the findings on all of them.

        Raises:
            CaptureError: inside of the block; when it was recorded without ``doctor=True``; or when
                the block could not be watched, or has left nothing to be examined.
        """
        if self._block is None:
            raise CaptureError(
                "this block was recorded without the doctor",
                "record it with gradscope.record(doctor=True), or examine one graph with "
                "run.doctor(loss)",
            )
        if self._report is None:
            found = diagnosed(self._block.report(), self._ignored, self._folder)
            self._report = Report.of(found)
        return self._report

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of :meth:`report`, worst first; raises as that does."""
        return self.report().findings


@dataclass(eq=False, repr=False)
class RecordedBlock:
    """The block itself; ends with it, and lets exceptions through as they are.

    Args:
        doctor: watch its backward calls.
        thorough: look at all of them in full.
        check: keep the calls, so that they can be made again.
        ignored: codes of rules that stay silent.
        as_test: as in an :class:`gradscope.analyses.doctor.request.Examination`.
    """

    doctor: bool
    thorough: bool
    check: bool
    ignored: Collection[str]
    as_test: bool = False
    _block: WatchedBlock | None = field(default=None, init=False)
    _own: Recorder | None = field(default=None, init=False)
    _joined: tuple[Recorder, Listener] | None = field(default=None, init=False)

    def __enter__(self) -> Run:
        if self._own is not None or self._block is not None:
            raise RuntimeError("one block at a time: call gradscope.record() for each")
        frame = sys._getframe(1)
        with in_python():
            recorder = self._examined(frame) if self.doctor else self._recorded()
            if self.check and recorder is not None:
                self._keep_calls(recorder)
        tape = self._joined[1] if self._joined else None
        return Run(recorder, tape, self._block, self.ignored)

    def _examined(self, frame: FrameType) -> Recorder | None:
        from gradscope.model.request import Examination
        from gradscope.rules import is_graver, is_serious, passing
        from gradscope.running.block import WatchedBlock

        how = Examination(
            keep_going=True,
            thorough=self.thorough,
            serious=partial(is_serious, ignore=self.ignored),
            graver=partial(is_graver, ignore=self.ignored),
            passing=partial(passing, ignore=self.ignored),
            as_test=self.as_test,
        )
        self._block = WatchedBlock(how, frame)
        self._block.begin()
        return self._block.recorder

    def _recorded(self) -> Recorder | None:
        from gradscope.recording.recorder import Recorder

        # Under the command line, or in an outer block, everything is recorded already.
        if Recorder.active is None:
            self._own = Recorder().start()
        return Recorder.active

    def _keep_calls(self, recorder: Recorder) -> None:
        from gradscope.graphing.study import listener_of

        if recorder.thread == threading.get_ident():
            listener = listener_of(Check)(recorder)
            recorder.listeners.add(listener)
            self._joined = recorder, listener

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with in_python():
            if self._joined is not None:
                self._joined[0].listeners.remove(self._joined[1])
            if self._own is not None:
                self._own.stop()
            if error is not None:
                clean(error)
            if self._block is not None:
                self._block.end(error)


@public
def record(
    *,
    doctor: bool = False,
    thorough: bool = False,
    check: bool = False,
    ignore: Collection[str] = (),
) -> RecordedBlock:
    """Record what the ``with`` block runs, so that its graphs are labelled with expressions and
    lines.

    Blocks may be nested, also when the program itself runs under the command line.  Whatever the
    block does, it does as without us: exceptions leave it as they are.  One thread at a time is
    recorded, the one that began.

    Args:
        doctor: watch every backward call of the block as ``gradscope doctor`` does; the block is
            never stopped, and :meth:`Run.report` tells of all of it when it has ended.
        thorough: with ``doctor``: look at every backward call in full.  By default only the first
            ones are, then ever fewer, and those where something turned up.
        check: keep the calls with their operands (2 GiB at most), so that :func:`check` can make
            them again, inside of the block or with :meth:`Run.check` after it.
        ignore: rules that stay silent in the doctor's report, by code or name.

    Raises:
        TypeError: when ``ignore`` is no collection of texts.
        GradscopeError: when ``ignore`` names no rule.
    """
    return RecordedBlock(doctor, thorough, check, codes(ignore))
