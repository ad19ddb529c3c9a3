"""Calls of ``torch.autograd.grad`` whose result goes into a later backward call.

A gradient penalty, a physics-informed loss, an inner step of meta-learning: the program takes a
gradient with ``create_graph`` and computes its loss from it.  Such a call is a part of the loss,
and what is asked about is the call that walks all of it.  Whether one comes is only known when it
does, so what was seen of the inner call is kept until then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from gradscope.autograd.calls import BackwardCall
from gradscope.errors import GradscopeError
from gradscope.model.report import Report
from gradscope.recording.recorder import Recorder


@dataclass(frozen=True)
class Answer:
    """What a look at one call gave: a report, or why there is none."""

    report: Report | None
    error: GradscopeError | None


def is_inner(call: BackwardCall) -> bool:
    """Whether a later call may build on what this one returns."""
    return call.create_graph and not call.accumulates


@dataclass
class InnerCalls:
    """The inner calls since the last one that was none."""

    recorder: Recorder
    _first: Answer | None = None
    _numbers: list[int] = field(default_factory=list)
    _places: dict[str, None] = field(default_factory=dict)

    def put(self, call: BackwardCall, number: int, answer: Answer) -> None:
        """Remember an inner call; what was seen of it counts if no later one builds on it."""
        # A call that can be shown is a better answer than one that cannot.
        if self._first is None or self._first.report is None:
            self._first = answer
        self._numbers.append(number)
        site = self.recorder.places.site_of(call.frame)
        if site is not None:
            origin = self.recorder.sources.origin(site)
            self._places[f"{origin.file}:{origin.line}"] = None

    def chosen(self, last: Answer) -> Answer:
        """What is to be shown: of the call that came after the inner ones, or of the first of
        them, where that one does not build on them."""
        first, self._first = self._first, None
        if first is None:
            return last
        shown = last.report
        # What an inner call has made is the sign that this call builds on it.
        if shown is None or not any(node.backward_made for node in shown.graph.nodes):
            return first if first.report is not None else last
        notes = (*shown.notes, self._note())
        return Answer(msgspec.structs.replace(shown, notes=notes), last.error)

    def _note(self) -> str:
        first, last = self._numbers[0], self._numbers[-1]
        are = f"call {first} is" if first == last else f"calls {first} to {last} are"
        at = f" at {', '.join(self._places)}" if self._places else ""
        return (
            f"{are} torch.autograd.grad{at}, and this call builds on what came of it; "
            f"--call {first} shows it"
        )
