"""Which backward call of a run is the one to be reported."""

from __future__ import annotations

from gradscope.capture.exam.case import Case
from gradscope.capture.exam.glance import Glance
from gradscope.capture.exam.request import Examination
from gradscope.capture.exam.tap import Tap
from gradscope.capture.exam.teller import Teller
from gradscope.capture.exam.watch import Watch
from gradscope.capture.exam.watched import Before, watched_case


class Chosen:
    """The case so far: the first call, one in which sizes went wrong, or, and then it is
    ``final``, the first in which something serious turned up."""

    def __init__(self, tap: Tap, teller: Teller, examination: Examination) -> None:
        self.case: Case | None = None
        self.is_final = False
        self._accumulates = False
        self._tap = tap
        self._teller = teller
        self._examination = examination

    def consider(
        self, made: Watch | Glance, before: Before | None, trouble: bool, odd: bool
    ) -> bool:
        """Keep a call that was just made, if it is the one that matters.

        Args:
            made: the call.
            before: what was seen before it; None for a glance.
            trouble: something is wrong with it.
            odd: nothing is, but the size of its gradients has jumped, or some have gone.

        Returns:
            Whether it is no use to go on.
        """
        first = self.case is None or (made.call.accumulates and not self._accumulates)
        if self.is_final or not (first or trouble or (odd and before is not None)):
            return False
        watch = made.in_full() if isinstance(made, Glance) else made
        case = watched_case(self._tap, watch, before or Before())
        self.is_final = trouble and self._is_serious(case)
        if first or self._is_graver(case):
            self.case, self._accumulates = case, made.call.accumulates
        return self.is_final and not self._examination.keep_going

    def _is_serious(self, case: Case) -> bool:
        judge = self._examination.serious
        return judge is None or judge(self._teller.report(case))

    def _is_graver(self, case: Case) -> bool:
        """Whether a later call tells more than the one that is kept."""
        judge = self._examination.graver
        if judge is None or self.case is None:
            return self.is_final
        return judge(self._teller.report(case), self._teller.report(self.case))
