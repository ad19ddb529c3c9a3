"""Who listens to a recorder: one protocol for everybody who wants more than it remembers itself.

A recorder asks each listener, in this order, about every torch call of the program: how closely the
call is to be heard (:meth:`Listener.route`), :meth:`Listener.before` it, and :meth:`Listener.after`
it.  Whatever a listener raises is a fault of ours, and never the program's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

from torch.autograd.graph import Node as LiveNode

from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.isolation import functions_off
from gradscope.recording.torch_call import TorchCall

IGNORED: Final = False
"""A route: the call tells nothing, and is made without anyone looking."""

IN_FULL: Final = True
"""A route: the call is heard by :meth:`Listener.before` and :meth:`Listener.after`."""


class Listener:
    """Hears nothing, as it stands; a subclass overrides what it wants to hear.

    ``glanced`` are the functions whose calls need no :meth:`route` as long as nobody else listens,
    none of which starts a backward pass: what is kept there is handed to :meth:`briefly`; of one
    that is :data:`IGNORED` nobody hears.  ``prepares``: the functions of which :meth:`before` is to
    hear, None where that is all.
    """

    prepares: tuple[Any, ...] | None = ()

    def __init__(self) -> None:
        self.glanced: dict[Any, Any] = {}

    def start(self) -> None:
        """The recorder has begun to watch: install what else is needed."""

    def stop(self) -> None:
        """The recorder is about to stop: leave nothing behind."""

    def end(self) -> None:
        """What was asked is answered; the program may run on, and nothing need be kept."""

    def route(self, func: Any, frame: FrameType) -> Any:  # noqa: ARG002
        """How closely a call of this function, made in this frame, is to be heard.

        Asked before each call; it costs every call of the program what it costs.  With several
        listeners a call is heard in full by all as soon as one wants to hear of it.
        """
        return IN_FULL

    def before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call is about to be made; what is returned comes back in :meth:`after`."""

    def after(self, call: TorchCall, opened: Any) -> None:
        """A call has returned; one that raised is not heard of again."""

    def briefly(
        self,
        kind: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        first: int,
        out: Any,
        frame: FrameType,
    ) -> bool | None:
        """A call of a function that is ``glanced`` at has returned.

        Args:
            kind: what is kept there.
            args, kwargs: what it was given.
            first: the sequence number before it; where it made a node there is another one now.
            out: its result.
            frame: who called.

        Returns:
            whether all is remembered that there is; else :meth:`after` is to hear of it.
        """

    def woken(self) -> None:
        """The program calls a function that stands in the place of torch's own, which is heard even
        while the recorder is taken off."""

    def released(self, call: BackwardCall, nodes: Sequence[LiveNode] | None) -> None:
        """A backward call is about to be made that frees what its graph saved; ``nodes`` are those
        of the graph, where they are known."""

    def differentiated(self, call: TorchCall, opened: Any) -> None:
        """``torch.autograd.grad`` has returned, and may have made nodes."""

    def refused(self, error: Exception, args: tuple[Any, ...], frame: FrameType) -> None:
        """A backward call has raised; ``frame`` is the program's."""


class Listeners:
    """All who listen to one recorder.

    ``route`` is asked before each call, and None where nobody listens.  ``unopened`` is what
    :meth:`before` gives where nobody wants to hear of a call before it is made.  ``glanced`` are
    the functions of which a listener that is alone hears ``briefly``.
    """

    def __init__(self) -> None:
        self.all: tuple[Listener, ...] = ()
        self.glanced: dict[Any, Any] = {}
        self.briefly = Listener().briefly
        self.route: Callable[[Any, FrameType], Any] | None = None
        self.unopened: tuple[None, ...] = ()
        self._prepares_all = False
        self._prepares: list[Any] = []
        self._are_started = False

    def add(self, listener: Listener) -> None:
        """One more, from now on; it may be in the middle of a run."""
        self._set((*self.all, listener))
        if self._are_started:
            listener.start()

    def remove(self, listener: Listener) -> None:
        """Take a listener off, which then undoes what it has put up."""
        if self._are_started and listener in self.all:
            listener.stop()
        self._set(tuple(one for one in self.all if one is not listener))

    def _set(self, listeners: tuple[Listener, ...]) -> None:
        self.all = listeners
        # Made once: without it every call of torch would make a new tuple.
        self.unopened = (None,) * len(self.all)
        # Most want to hear of a call when it is over; what is asked before costs every call of
        # torch.
        wanted = [one.prepares for one in listeners]
        self._prepares_all = None in wanted
        self._prepares = [func for funcs in wanted for func in funcs or ()]
        # One alone says how closely; several would each have to know what the others need.
        several = self._route_for_all if listeners else None
        self.route = listeners[0].route if len(listeners) == 1 else several
        alone = listeners[0] if len(listeners) == 1 else Listener()
        self.glanced, self.briefly = alone.glanced, alone.briefly

    def start(self) -> None:
        """The recorder has begun to watch."""
        self._are_started = True
        for listener in self.all:
            listener.start()

    def stop(self) -> None:
        """The recorder is about to stop; who came last goes first."""
        self._are_started = False
        for listener in reversed(self.all):
            listener.stop()
        # Whoever stops in the middle of a call is put back by torch when that is over, and hears
        # of further ones.
        self.glanced, self.route = {}, lambda *_: IGNORED

    def _route_for_all(self, func: Any, frame: FrameType) -> bool:
        routes = [listener.route(func, frame) for listener in self.all]
        return IN_FULL if any(route is not IGNORED for route in routes) else IGNORED

    def prepares(self, func: Any) -> bool:
        """Whether anybody wants to hear of a call of this function before it is made."""
        # By identity: a class of the program, whose `apply` it may be, need have no hash.
        return self._prepares_all or any(func is one for one in self._prepares)

    def before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """A call is about to be made; what each of them wants to have back after it."""
        with functions_off():
            return tuple(listener.before(func, args, kwargs) for listener in self.all)

    def after(self, call: TorchCall, opened: Sequence[Any]) -> None:
        """A call has returned."""
        # A custom Function may have added one inside of this call, who comes last.
        for listener, one in zip(self.all, opened, strict=False):
            if len(self.all) == 1 or listener.route(call.func, call.frame) is not IGNORED:
                listener.after(call, one)

    def differentiated(self, call: TorchCall, opened: Sequence[Any]) -> None:
        """``torch.autograd.grad`` has returned."""
        for listener, one in zip(self.all, opened, strict=False):
            listener.differentiated(call, one)
