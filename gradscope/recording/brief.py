"""What is remembered of a torch call of which nobody wants to hear more: the short way of most.

Small operations take a few microseconds each, so what is asked of a call is written out, and looked
up as seldom as can be.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.autograd import profiler

from gradscope.autograd.isolation import dispatch_modes, function_modes
from gradscope.recording.events import MAKES_LEAF, changes_first, own_change
from gradscope.recording.recording import Recording, sequence_number
from gradscope.recording.spans import MAX_LATEST

Remember = Callable[[Any, tuple[Any, ...], dict[str, Any], int, Any, FrameType], bool]
"""Takes the function, its arguments, the sequence number before the call, the result and the frame
that called; says whether all is remembered that there is."""


def remembering(recording: Recording) -> Remember:
    """What remembers a call whose tensors are of torch's own classes and whose leaves have names,
    if nobody hears what a tensor is asked."""
    places, values, spans, events = (
        recording.places,
        recording.values,
        recording.spans,
        recording.events,
    )
    number_around, are_known = places.number_around, recording.leaf_names.are_known
    changes, latest, keep = events.changes, spans.latest, values.keep

    def remember(
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        first: int,
        out: Any,
        frame: FrameType,
    ) -> bool:
        end = sequence_number()
        if function_modes():
            return False
        is_change = changes(func, kwargs)
        if (is_change and not changes_first(args, kwargs)) or (kwargs and own_change(args, kwargs)):
            return False
        if first == end:
            if is_change:
                events.note_change(func, args, kwargs, places.site(number_around(frame)))
                return True
            return not (isinstance(out, torch.Tensor) or func in MAKES_LEAF)
        if type(out) is not torch.Tensor:
            return False
        is_small = out.numel() <= keep
        if is_small and (profiler._is_profiler_enabled or dispatch_modes()):
            return False
        place = number_around(frame)
        if place < 0 or not are_known(place, args):
            return False
        latest.extend((first, end, place))
        if len(latest) > MAX_LATEST:
            spans.settle()
        if is_change:
            events.note_change(func, args, kwargs, places.site(place))
            values.note(end - 1, out)
        elif is_small:
            values.note_computed(end - 1, out)
        return True

    return remember
