"""A block of code that is recorded, and what can be asked about it."""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from gradscope.api.looking import codes, diagnosed
from gradscope.api.report import Report
from gradscope.errors import CaptureError
from gradscope.target import clean

if TYPE_CHECKING:
    import torch

    from gradscope.model.observations import Finding
    from gradscope.recording.recorder import Recorder
    from gradscope.running.block import WatchedBlock


class Run:
    """A block of code that was recorded: its results can be looked at with the lines that made
    them, and with ``doctor=True`` there is a report of all its backward calls.

    Made by :func:`record`."""

    def __init__(
        self, recorder: Recorder | None, block: WatchedBlock | None, ignored: Collection[str]
    ) -> None:
        self._recorder = recorder
        self._block = block
        self._ignored = ignored
        self._report: Report | None = None

    def trace(self, root: torch.Tensor) -> Report:
        """As :func:`trace`, for a tensor made in the block."""
        from gradscope.running.look import look

        return Report.of(look(self._recorder, sys._getframe(1), root, None))

    def backward(self, root: torch.Tensor, gradient: Any = None) -> Report:
        """As :func:`backward`, for a tensor made in the block."""
        from gradscope.running.look import look

        return Report.of(look(self._recorder, sys._getframe(1), root, (gradient,)))

    def doctor(self, root: torch.Tensor, *, ignore: Collection[str] = ()) -> Report:
        """As :func:`doctor`, for a tensor made in the block, whether or not it was recorded with
        ``doctor=True``; where it was, what was seen of the forward pass counts as well."""
        from gradscope.running.built import examine

        ignored = (*self._ignored, *codes(ignore))
        seen = self._block.examiner.listener if self._block and self._block.examiner else None
        return diagnosed(examine(self._recorder, sys._getframe(1), root, seen), ignored)

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
            self._report = diagnosed(self._block.report(), self._ignored)
        return self._report

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of :meth:`report`, worst first; raises as that does."""
        return self.report().findings


class RecordedBlock:
    """The block itself; ends with it, and lets exceptions through as they are."""

    def __init__(self, doctor: bool, ignored: Collection[str]) -> None:
        self._doctor = doctor
        self._ignored = ignored
        self._block: WatchedBlock | None = None
        self._own: Recorder | None = None

    def __enter__(self) -> Run:
        return self._examined(sys._getframe(1)) if self._doctor else self._recorded()

    def _examined(self, frame: FrameType) -> Run:
        from gradscope.analyses.doctor.request import Examination
        from gradscope.diagnose import is_graver, is_serious
        from gradscope.running.block import WatchedBlock

        how = Examination(keep_going=True, serious=is_serious, graver=is_graver)
        self._block = WatchedBlock(how, frame)
        self._block.begin()
        return Run(self._block.recorder, self._block, self._ignored)

    def _recorded(self) -> Run:
        from gradscope.recording.recorder import Recorder

        # Under the command line, or in an outer block, everything is recorded already.
        if Recorder.active is None:
            self._own = Recorder().start()
        return Run(Recorder.active, None, self._ignored)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._own is not None:
            self._own.stop()
        if error is not None:
            clean(error)
        if self._block is not None:
            self._block.end(error)


def record(*, doctor: bool = False, ignore: Collection[str] = ()) -> RecordedBlock:
    """Record what the ``with`` block runs, so that its graphs are labelled with expressions and
    lines.

    Blocks may be nested, also when the program itself runs under the command line.  Whatever the
    block does, it does as without us: exceptions leave it as they are.

    Args:
        doctor: watch every backward call of the block as ``gradscope doctor`` does; the block is
            never stopped, and :meth:`Run.report` tells of all of it when it has ended.
        ignore: rules that stay silent in that report, by code or name.

    Raises:
        GradscopeError: when ``ignore`` names no rule.
    """
    return RecordedBlock(doctor, codes(ignore))
