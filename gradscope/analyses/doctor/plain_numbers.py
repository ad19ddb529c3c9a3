"""Python numbers that the program has made of tensors with history, and adds to a loss again.

A number is known by its identity, wherever the program keeps it: it is searched for under the names
in the expression that adds.  One that was computed from an array of numpy's is known by the
statement that assigns it: the array, or the call that makes it, stands in it.
"""

from __future__ import annotations

import numbers
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from types import FrameType
from typing import Any

import torch

from gradscope.analyses.doctor.cut_calls import CutCall
from gradscope.autograd.tensors import TensorTable, requires_grad
from gradscope.recording.compiled import names_in, summands
from gradscope.recording.names import value_in_frame
from gradscope.recording.places import frames_from
from gradscope.recording.source import Sources
from gradscope.recording.torch_call import TorchCall
from gradscope.walks import walk

MAX_NUMBERS = 1_000
"""Numbers that are remembered, the latest."""

MAX_LISTED = 100
"""Numbers of a list that are looked at."""

MAX_ARRAYS = 100
"""Arrays that are remembered, the latest."""

MAX_READ = 20
"""Expressions that are read to learn what a tensor was computed from, in each frame."""

MAX_FRAMES = 10
"""Frames in which they are read."""


class PlainNumbers:
    """The numbers, with the calls that cut off what they were made of.

    Args:
        sources: tells the names in an expression.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        # With the number itself, so that its id is no other's.
        self._known: OrderedDict[int, tuple[float, list[CutCall]]] = OrderedDict()
        self._arrays: OrderedDict[int, tuple[weakref.ref[Any], str, list[CutCall]]] = OrderedDict()
        self._asked: TensorTable[bool] = TensorTable(MAX_NUMBERS)

    def note(self, number: object, calls: list[CutCall]) -> None:
        """A call has made this of what has a history, or had one; also of a list of numbers."""
        for one in _numbers_in(number) if calls else ():
            if type(one) is float:
                self._known[id(one)] = one, calls
                if len(self._known) > MAX_NUMBERS:
                    self._known.popitem(last=False)

    def note_array(self, call: TorchCall, calls: list[CutCall]) -> None:
        """A call has given an array of what had a history."""
        site = call.places.site(call.place)
        if site is not None and call.out is not None:
            text = self._sources.origin(site).expression
            self._arrays.pop(id(call.out), None)  # the latest comes last
            self._arrays[id(call.out)] = weakref.ref(call.out), text, calls
            if len(self._arrays) > MAX_ARRAYS:
                self._arrays.popitem(last=False)

    def forget_arrays(self) -> None:
        """What comes now belongs to the next backward call."""
        self._arrays.clear()
        self._asked.clear()

    def entering(self, call: TorchCall) -> list[CutCall]:
        """Return the cuts behind arrays that come back to torch in a tensor that a call takes.

        Torch does not tell who makes a tensor of an array: where none was seen to be, the
        expressions that led to the call are read, and what is assigned to the names in them.
        """
        if not self._arrays:
            return []
        fresh = [one for one in call.operands if one not in self._asked and not requires_grad(one)]
        for tensor in fresh:
            self._asked[tensor] = True
        if not any(tensor.is_floating_point() for tensor in fresh):
            return []
        found: dict[int, CutCall] = {}
        places = call.places
        own = (one for one in frames_from(call.user, places) if places.is_own(one.f_code))
        for frame in islice(own, MAX_FRAMES):
            site = places.site_of(frame)
            text = "" if site is None else self._sources.origin(site).expression
            found.update((id(one), one) for one in self._behind_text(text, frame))
        return list(found.values())

    def _behind_text(self, text: str, frame: FrameType) -> Iterator[CutCall]:
        """Those behind the arrays that an expression was computed from, over several
        assignments."""

        def assigned(text: str) -> Iterator[str]:
            for name in names_in(text):
                value = value_in_frame(name, frame)
                # What has a history was not computed from arrays alone.
                if not isinstance(value, torch.Tensor) or not requires_grad(value):
                    yield from self._sources.assigned(frame.f_code, name)

        for one in islice(walk([text], assigned), MAX_READ):
            for calls in self._in_text(one, frame):
                yield from calls

    def added(self, call: TorchCall) -> list[CutCall]:
        """Those behind a number that a call adds to a tensor, or makes one of, also in a list."""
        if not (self._known or self._arrays):
            return []
        given = [number for argument in call.args for number in _numbers_in(argument)]
        found = [self._calls_of(one) for one in given]
        site = None if call.user is None else call.places.site(call.place)
        if given and not any(found) and site is not None and call.user is not None:
            names = self._sources.operands(site)
            found = [self._calls_of(value_in_frame(name, call.user)) for name in names]
            if not any(found):
                terms = summands(self._sources.origin(site).expression)
                found = list(self._made_within(terms, call.user, call))
            if not any(found) and self._arrays:
                found = [list(self._behind_text(one, call.user)) for one in _read(terms, call.user)]
        return [one for calls in found for one in calls]

    def _calls_of(self, value: object) -> list[CutCall]:
        return self._known[id(value)][1] if id(value) in self._known else []

    def _made_within(
        self, terms: list[str], frame: FrameType, call: TorchCall
    ) -> Iterator[list[CutCall]]:
        """Those whose number is made within a term which is a number itself, as 2 * x.item()."""
        for _, calls in islice(reversed(self._known.values()), MAX_READ):
            site = call.places.site(calls[0].cut.place)
            made = "" if site is None else self._sources.origin(site).expression
            for term in terms:
                beside = term.replace(made, "0") if made else term
                values = [value_in_frame(name, frame) for name in names_in(beside)]
                if beside != term and not any(isinstance(one, torch.Tensor) for one in values):
                    yield calls

    def _in_text(self, text: str, frame: FrameType) -> Iterator[list[CutCall]]:
        """Those behind the arrays that stand in an expression, or in which their making stands."""
        read = [value_in_frame(one, frame) for one in names_in(text)]
        latest = set[str]()
        for reference, made, calls in reversed(self._arrays.values()):
            array = reference()
            is_read = array is not None and any(one is array for one in read)
            # The same expression has made an array each time that it ran, and may have run where
            # gradients are switched off.
            if is_read or (made and made in text and made not in latest):
                yield calls
            latest.add(made)


def _read(terms: list[str], frame: FrameType) -> Iterator[str]:
    """The names of numbers in those terms that are numbers themselves: what multiplies a tensor is
    a weight, and needs no gradient."""
    for names in map(names_in, terms):
        values = [value_in_frame(name, frame) for name in names]
        if not any(isinstance(value, torch.Tensor) for value in values):
            yield from (name for name, one in zip(names, values, strict=True) if _is_number(one))


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
