"""Python numbers that the program has made of tensors with history, and adds to a loss again.

A number is known by its identity, wherever the program keeps it: it is searched for under the names
in the expression that adds.
"""

from __future__ import annotations

import numbers
from collections import OrderedDict

from gradscope.analyses.doctor.cut_calls import CutCall
from gradscope.recording.names import value_in_frame
from gradscope.recording.source import Sources
from gradscope.recording.torch_call import TorchCall

MAX_NUMBERS = 1_000
"""Numbers that are remembered, the latest."""

MAX_LISTED = 100
"""Numbers of a list that are looked at."""


class PlainNumbers:
    """The numbers, with the calls that cut off what they were made of.

    Args:
        sources: tells the names in an expression.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        # With the number itself, so that its id is no other's.
        self._known: OrderedDict[int, tuple[float, list[CutCall]]] = OrderedDict()

    def note(self, number: object, calls: list[CutCall]) -> None:
        """A call has made this of what has a history, or had one; also of a list of numbers."""
        for one in _numbers_in(number) if calls else ():
            if type(one) is float:
                self._known[id(one)] = one, calls
                if len(self._known) > MAX_NUMBERS:
                    self._known.popitem(last=False)

    def added(self, call: TorchCall) -> list[CutCall]:
        """Those behind a number that a call adds to a tensor, or makes one of, also in a list."""
        if not self._known:
            return []
        given = [number for argument in call.args for number in _numbers_in(argument)]
        found = [self._calls_of(one) for one in given]
        site = None if call.user is None else call.places.site(call.place)
        if given and not any(found) and site is not None and call.user is not None:
            names = self._sources.operands(site)
            found = [self._calls_of(value_in_frame(name, call.user)) for name in names]
        return [one for calls in found for one in calls]

    def _calls_of(self, value: object) -> list[CutCall]:
        return self._known[id(value)][1] if id(value) in self._known else []


def _numbers_in(value: object) -> list[object]:
    """The number that something is, or the first ones that a list holds, also in lists."""
    waiting, found = [value], list[object]()
    while waiting and len(found) < MAX_LISTED:
        one = waiting.pop()
        if isinstance(one, list | tuple):
            waiting += reversed(one[:MAX_LISTED])
        elif _is_number(one):
            found.append(one)
    return found


def _is_number(value: object) -> bool:
    """Whether it is a number that may have a fraction, numpy's too."""
    kind = type(value)
    return issubclass(kind, numbers.Real) and not issubclass(kind, numbers.Integral)
