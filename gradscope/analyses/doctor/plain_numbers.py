"""Python numbers that the program has made of tensors with history, and adds to a loss again.

A number is known by its identity, wherever the program keeps it: it is searched for under the names
in the expression that adds.
"""

from __future__ import annotations

from collections import OrderedDict

from gradscope.analyses.doctor.known_cuts import CutCall
from gradscope.recording.names import value_in_frame
from gradscope.recording.source import Sources
from gradscope.recording.torch_call import TorchCall

MAX_NUMBERS = 1_000
"""Numbers that are remembered, the latest."""


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
        """A call has made this of what has a history, or had one."""
        if type(number) is float and calls:
            self._known[id(number)] = number, calls
            if len(self._known) > MAX_NUMBERS:
                self._known.popitem(last=False)

    def added(self, call: TorchCall) -> list[CutCall]:
        """Those behind a number that a call adds to a tensor, or makes one of."""
        if not self._known or not any(type(one) is float for one in call.args):
            return []
        found = [self._calls_of(one) for one in call.args]
        site = None if call.user is None else call.places.site(call.place)
        if not any(found) and site is not None and call.user is not None:
            names = self._sources.operands(site)
            found = [self._calls_of(value_in_frame(name, call.user)) for name in names]
        return [one for calls in found for one in calls]

    def _calls_of(self, value: object) -> list[CutCall]:
        return self._known[id(value)][1] if id(value) in self._known else []
