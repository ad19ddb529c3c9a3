"""Parts of a graph that are older than a step which changed what they were made of: computed once,
before the loop or at the beginning of an epoch, and gone through again by each backward.

A walk holds the numbers that tell; which variable carries the part over is asked once a part.
"""

from __future__ import annotations

from gradscope.analyses.doctor.carriers import carrier
from gradscope.analyses.training.loop_order import LoopOrder, MadeStep, ids_of
from gradscope.autograd.nodes import leaf_of, torch_name
from gradscope.autograd.walk import NO_SEQUENCE, Walked
from gradscope.graphing.watched_call import MeasuredCall
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder

MAX_PARTS = 1_000
"""Parts of which it is remembered what carries them."""

_CAST = "ToCopyBackward0"
"""Autocast casts each parameter once, and keeps the cast while its region lasts."""


class StaleParts:
    """Looks for such parts, and tells the order of the loop."""

    def __init__(self, recorder: Recorder, order: LoopOrder) -> None:
        self._recorder = recorder
        self._order = order
        self._known: dict[int, int] = {}

    def look(self, made: MeasuredCall) -> None:
        """A call is about to go through this graph."""
        numbers = [node._sequence_nr() for node in made.walked.nodes]
        own = [
            n < NO_SEQUENCE and torch_name(node) != _CAST
            for n, node in zip(numbers, made.walked.nodes, strict=True)
        ]
        inner = [edge for edge in made.walked.edges if own[edge[2]]]
        # Each thread counts for itself: between two of them a number says nothing of age.
        if any(numbers[source] < numbers[target] for source, _, target, _ in inner):
            return
        place = self._recorder.places.number(made.call.frame)
        for step in self._order.last_steps.values():
            seam = next(
                (to for at, _, to, _ in inner if numbers[to] < step.sequence <= numbers[at]), None
            )
            if seam is not None and (changed := _changed(made.walked, numbers, step)):
                carried = self._carrier(made, seam, numbers, step)
                self._order.odd.tell("stale part", carried, changed, other=place)

    def _carrier(self, made: MeasuredCall, seam: int, numbers: list[int], step: MadeStep) -> int:
        """The place that stores what carries the part over, or else made it."""
        known = self._known.get(numbers[seam])
        if known is None:
            recorder = self._recorder
            old = {number for number in numbers if number < step.sequence}
            frames = list(frames_from(made.call.frame, recorder.places))
            found = carrier(made.walked, seam, old, frames, recorder)
            span = recorder.span_of(numbers[seam])
            known = -1 if span is None else span.place
            if found is not None and found.stored is not None:
                known = recorder.places.number_of_site(found.stored)
            if len(self._known) < MAX_PARTS:
                self._known[numbers[seam]] = known
        return known


def _changed(walked: Walked, numbers: list[int], step: MadeStep) -> int:
    """The leaves below the old part that the step has changed."""
    used = {target for source, _, target, _ in walked.edges if numbers[source] < step.sequence}
    leaves = (leaf_of(walked.nodes[one]) for one in used if numbers[one] >= NO_SEQUENCE)
    return len(ids_of(leaf for leaf in leaves if leaf is not None) & step.changed)
