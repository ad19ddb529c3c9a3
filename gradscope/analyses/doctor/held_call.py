"""What is told of a call to whoever may make the program wait there: its report, with the chain
rule followed while what that needs was still saved.  Must not know what is worth to wait for."""

from __future__ import annotations

from time import monotonic

import msgspec

from gradscope.analyses.doctor.call_selector import CallSelector
from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.analyses.doctor.report_builder import ReportBuilder
from gradscope.analyses.doctor.request import Examination
from gradscope.graphing.probe import Detail, Probe
from gradscope.graphing.study import LiveGraph, studied
from gradscope.handlers import let_pass
from gradscope.model.explanation import Explanation
from gradscope.model.report import Report
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from

MOST_NODES = 2_000
"""Nodes of a graph in which the chain rule is followed, which takes about ten backward passes."""

ENOUGH = 20
"""Backward calls after which the report of a run says something of it."""


class HeldCalls:
    """Tells an examination's ``hold`` of calls; where there is none, does nothing."""

    def __init__(
        self, examination: Examination, builder: ReportBuilder, selector: CallSelector
    ) -> None:
        self._asked = examination
        self._builder = builder
        self._selector = selector
        self._explanation: Explanation | None = None
        self._reports: tuple[Report, Report | None] | None = None

    def before(self, made: FullCapture) -> None:
        """The call is about to be made, and will free what explains it."""
        if self._asked.study is None or len(made.walked.nodes) > MOST_NODES:
            return
        call, recorder = made.call, made.recorder
        scopes = Scopes.of_frames(frames_from(call.frame, recorder.places))
        try:
            probe = Probe(call.roots, recorder, scopes, Detail())
            live = LiveGraph(probe, call.roots, call.gradients, recorder, None, scopes)
            found: Explanation = studied(self._asked.study, live)["explanation"]
            self._explanation = msgspec.structs.replace(found, everything=False)
        except Exception as error:  # the call is looked at all the same
            let_pass(error)

    def after(self, watched: int) -> None:
        """The call has been made and considered, the last of so many."""
        case, self._selector.considered = self._selector.considered, None
        answer, self._explanation = self._explanation, None
        if case is None:
            return
        report = msgspec.structs.replace(self._builder.report(case), explanation=answer)
        is_enough = watched >= min(self._asked.steps or ENOUGH, ENOUGH)
        chosen = self._selector.case if is_enough else None
        self._reports = report, None if chosen is None else self._builder.report(chosen)

    def hold(self) -> float:
        """Let the program wait, where somebody wants that; seconds in which it was not watched.

        Ctrl-C, and what handlers of signals raise, ends that as it ends the call.
        """
        reports, self._reports = self._reports, None
        since = monotonic()
        try:
            if reports is not None and self._asked.hold is not None:
                self._asked.hold(*reports)
        except Exception as error:
            self._builder.note_unseen(error)
        return monotonic() - since
