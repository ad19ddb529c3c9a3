"""What is remembered of the backward calls of the program, and who makes them.

Which call freed the saved tensors of which nodes: written down as sequence numbers, because holding
the nodes would keep the graph alive.  Which calls other threads made than the one that is watched.
Which losses a GradScaler had multiplied, and by how much.  Several may call at once, and a process
may fork meanwhile: nothing here takes a lock.
"""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any

import torch
from torch.amp import grad_scaler
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.nodes import sequence_number
from gradscope.autograd.tensors import grad_fn_of
from gradscope.patched import Original, by_way_of
from gradscope.recording.places import Places
from gradscope.recording.source import Site, Sources
from gradscope.words import count, listed, one_line

MAX_NODES = 20_000
"""Nodes remembered of one call.  Touching many more of a chain would make it unsafe to drop."""

MAX_CALLS = 100
"""Calls remembered."""


class FreedGraphs:
    """The last backward calls that freed their graph, and what was in it."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Site | None, array[int]]] = deque(maxlen=MAX_CALLS)

    def note(self, site: Site | None, nodes: Sequence[LiveNode]) -> None:
        """Remember that the call at this place is about to free these nodes, nearest first."""
        # Unsigned, because an AccumulateGrad carries the largest number there is.
        numbers = array("Q", [node._sequence_nr() for node in nodes[:MAX_NODES]])
        self._calls.append((site, numbers))

    def by(self, sequence: int) -> Site | None:
        """Where the node with this sequence number was first freed, or None when not seen."""
        return next((site for site, numbers in self._calls if sequence in numbers), None)

    def numbers(self, but_the_last: bool) -> set[int]:
        """The sequence numbers of all nodes freed by these calls, or by those before the last."""
        # A call is noted before it is made, so that the last one may be the call that has failed.
        calls = list(self._calls)[: -1 if but_the_last else None]
        return {number for _, numbers in calls for number in numbers}


MOST_PLACES = 100
"""Threads and lines that are remembered; the calls of all are counted."""


class Elsewhere:
    """The calls of other threads; false while there are none."""

    def __init__(self, sources: Sources, places: Places) -> None:
        self._sources = sources
        self._places = places
        # Each thread counts for itself, so that none overwrites what another has counted.
        self._calls: dict[int, int] = {}
        self._made: dict[tuple[str, Site | None], None] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def note(self, frame: FrameType) -> None:
        """This thread is about to make a call, in this frame; one of autograd's own is none."""
        me = threading.get_ident()
        # `current_thread` would make an entry for a thread that python does not know.
        name = next((one.name for one in threading.enumerate() if one.ident == me), None)
        if name is None:
            return
        self._calls[me] = self._calls.get(me, 0) + 1
        user = self._places.user_frame(frame)
        site = None if user is None else Site(user.f_code, user.f_lasti)
        if len(self._made) < MOST_PLACES:
            self._made.setdefault((name, site))

    def told(self) -> str:
        """A sentence about them; "" where there were none."""
        calls = sum(self._calls.copy().values())
        if not calls:
            return ""
        made = f"{count(calls, 'backward call')} {'was' if calls == 1 else 'were'} made in"
        threads = "another thread, which is" if calls == 1 else "other threads, which are"
        return f"{made} {threads} not watched: {listed(self._where())}"

    def _where(self) -> Iterator[str]:
        """Each line, with the threads that called there."""
        threads: dict[Site | None, list[str]] = {}
        for name, site in self._made.copy():
            threads.setdefault(site, []).append(one_line(name))
        for site, names in threads.items():
            who = listed(sorted(names), most=2)
            # There is none where the target of a thread is `loss.backward` itself.
            origin = None if site is None else self._sources.origin(site)
            yield who if origin is None else f"{who} at {origin}"


MOST = 1_000
"""Scaled losses that are remembered; a backward call mostly starts from the last one."""


class ScaledLosses:
    """What ``GradScaler.scale`` has made while its ``patch`` is started."""

    def __init__(self) -> None:
        self.patch = by_way_of(grad_scaler.GradScaler, "scale", self._note)
        self._made: deque[tuple[int, int]] = deque(maxlen=MOST)
        self._read: dict[int, float] = {}

    def _note(self, original: Original, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(*args, **kwargs)
        first = sequence_number()
        result = original(*args, **kwargs)
        if first < sequence_number():
            self._made.append((first, sequence_number()))
        return result

    def factor(self, root: Any) -> float | None:
        """By what a tensor or gradient edge was multiplied; None where no scaler made it, or its
        graph was freed before anyone asked."""
        node = grad_fn_of(root) if isinstance(root, torch.Tensor) else root.node
        if node is None:
            return None
        number = node._sequence_nr()
        made_here = any(first <= number < end for first, end in reversed(self._made))
        if made_here and number not in self._read:
            # What backward multiplies by; the scaler itself may have another scale by now.
            from gradscope.autograd.saved import value

            factor = value(node, "other")
            if factor is None or factor.numel() != 1:
                return None
            self._forget()
            self._read[number] = float(factor.detach())
        return self._read.get(number)

    def _forget(self) -> None:
        if len(self._read) >= MOST:
            self._read.clear()


BackwardHandler = Callable[[BackwardCall], Any]
"""Makes a backward call of the program, or does not, and returns its result."""


class BackwardHandlers:
    """The handlers of one recorder.  Who came last gets a call first; when that handler makes the
    call, it goes on to the one before, and the first of all really makes it."""

    def __init__(self, first: BackwardHandler) -> None:
        self._all = [first]

    def add(self, handler: BackwardHandler) -> None:
        self._all.append(handler)

    def remove(self, handler: BackwardHandler) -> None:
        self._all.remove(handler)

    def skip_while(self, is_early: Callable[[], bool], make: BackwardHandler) -> None:
        """While ``is_early`` says so, ``make`` makes the calls in place of the first handler."""
        first = self._all[0]
        self._all[0] = lambda call: make(call) if is_early() else first(call)

    def __call__(self, call: BackwardCall) -> Any:
        return self._handle(len(self._all) - 1, call)

    def _handle(self, position: int, call: BackwardCall) -> Any:
        handler = self._all[position]
        if position:
            call = call.handed_on(partial(self._handle, position - 1, call))
        return handler(call)
