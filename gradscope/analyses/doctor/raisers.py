"""Who raised inside a backward call: a custom Function, a hook of the program, or an operation.

The traceback tells the code that ran, and the nodes that had run tell whose turn it was.  Places
are still live; nothing of the exception is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch.autograd.function import BackwardCFunction, once_differentiable
from torch.utils import hooks as torch_hooks

from gradscope.analyses.doctor.capture import Capture
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.autograd import saved
from gradscope.autograd.nodes import is_leaf, op_name
from gradscope.escaping import message
from gradscope.model.observations import Raiser, RaiserKind
from gradscope.recording.hook_codes import KnownHook
from gradscope.recording.places import Places
from gradscope.recording.source import Site

_ENGINE: CodeType = torch.autograd.graph._engine_run_backward.__code__
_APPLY: CodeType = BackwardCFunction.apply.__code__
_BY_HOOK = re.compile(r"\bhooks?\b.* (changed|returned|should)|\bhook\b.* to return")
"""Torch's words where what a hook has returned cannot take the place of the gradient."""

_LATE = "post accumulate grad hooks should"
_OF_LEAVES = "register_post_accumulate_grad_hook"

_ONCE = "marked with @once_differentiable"
_MARK: CodeType = once_differentiable(len).__code__

_AFTER = "appears to not have been used in the graph"
"""Torch's words where all nodes have run, and a gradient that was asked for has not come up."""


class _TracebackStep(NamedTuple):
    """One frame of a traceback: its code, where it stood, and what ``self`` was there."""

    code: CodeType
    lasti: int
    own: Any


def raiser_of(error: BaseException, made: Capture, listener: DoctorListener) -> Raiser | None:
    """Who raised an error that ended a call, told in full; None where it was torch itself, before
    the first node or after the last."""
    steps = list(_inside(error))
    if not steps or _AFTER in message(error):
        return None
    search = _RaiserSearch(error, made, listener, steps[1:])
    return search.found()


def _inside(error: BaseException) -> Iterator[_TracebackStep]:
    """The frames of the traceback from the engine inwards."""
    step, is_inside = error.__traceback__, False
    while step is not None:
        frame = step.tb_frame
        is_inside |= frame.f_code is _ENGINE
        if is_inside:
            own = frame.f_locals.get("self") if frame.f_code is _APPLY else None
            yield _TracebackStep(frame.f_code, step.tb_lasti, own)
        step = step.tb_next


class _RaiserSearch:
    """Looks for the raiser in one failed call.

    Args:
        error, made, listener: as for :func:`raiser_of`.
        steps: the frames inside of the engine, outermost first.
    """

    def __init__(
        self,
        error: BaseException,
        made: Capture,
        listener: DoctorListener,
        steps: list[_TracebackStep],
    ) -> None:
        self._text = message(error)
        self._made = made
        self._listener = listener
        self._recorder = listener.recorder
        self._steps = steps
        self._walked = made.walked

    def found(self) -> Raiser:
        """The raiser."""
        own = [step for step in self._steps if not self._places.is_foreign(step.code)]
        raised = Site(own[-1].code, own[-1].lasti) if own else None
        first = self._steps[0] if self._steps else None
        if not own and _BY_HOOK.search(self._text):
            return self._of_hook([], raised)
        if first is None or _ONCE in self._text:
            turn = self._marked() if _ONCE in self._text else None
            turn = self._turn() if turn is None else turn
            is_own = turn is not None and isinstance(self._walked.nodes[turn], BackwardCFunction)
            return self._told("Function" if is_own else "operation", turn, raised)
        if first.code is _APPLY:
            return self._told(
                "Function", self._walked.index.get(first.own), raised, owner=first.own
            )
        unpacking = self._unpacking(first)
        if unpacking is not None:
            return self._told("saved tensor", unpacking, raised)
        return self._of_hook([step.code for step in own], raised)

    @property
    def _places(self) -> Places:
        return self._recorder.places

    def _told(
        self,
        kind: RaiserKind,
        node: int | None,
        raised: Site | None,
        registered: Site | None = None,
        owner: Any = None,
        name: str = "",
    ) -> Raiser:
        """The raiser at a node of the graph, or else of a node (``owner``) that is not in it."""
        owner = owner if node is None else self._walked.nodes[node]
        is_made = owner is not None and not is_leaf(owner)
        made = self._recorder.site_of(owner._sequence_nr()) if is_made else None
        name = name if kind == "hook" or owner is None else op_name(owner)
        return Raiser(kind, name, node, made, registered, raised)

    # ------------------------------------------------------------------ hooks

    def _of_hook(self, codes: list[CodeType], raised: Site | None) -> Raiser:
        """A hook raised: on which node, and where was it registered?"""
        hooks = self._listener.alterations
        known = next(filter(None, map(hooks.codes.of, codes)), None)
        # The last leaf has its gradient by the time such a hook runs.
        is_late = _LATE in self._text or (known is not None and known.function == _OF_LEAVES)
        node = self._made.flow.latest if is_late else self._turn()
        if any(step.code.co_filename == torch_hooks.__file__ for step in self._steps):
            node = None  # that of a module gets the gradient of what the module gave, or took
        elif node is not None:
            # One function may hang on many tensors: this very one was registered where?
            hook = hooks.hook_on(self._walked.nodes[node])
            is_it = hook.place >= 0 and (known is None or known.function == hook.function)
            known = hook if is_it else known
        known = known or (None if codes else self._only_hook())
        name = _written(codes[0]) if codes else ""
        registered = None if known is None else self._places.site(known.place)
        return self._told("hook", node, raised, registered, name=name)

    def _only_hook(self) -> KnownHook | None:
        """How all the hooks were registered that were seen in this graph, if by one line."""
        hooks, nodes = self._listener.alterations, self._walked.nodes
        of_modules = {KnownHook(name, place) for place, name in hooks.module_hooks.items()}
        seen = [one for one in {*map(hooks.hook_on, nodes), *of_modules} if one.place >= 0]
        return seen[0] if len(seen) == 1 else None

    def _unpacking(self, first: _TracebackStep) -> int | None:
        """The node whose saved tensor was being unpacked by this frame, if that is so."""
        position = self._turn()
        candidates = range(len(self._walked.nodes)) if position is None else (position,)
        for number in candidates:
            for slot in saved.slots(self._walked.nodes[number]):
                if getattr(slot.hook, "__code__", None) is first.code:
                    return number
        return None

    # ------------------------------------------------------------------ nodes

    def _turn(self) -> int | None:
        """The node that was running, or about to, when the call failed."""
        if self._made.is_full:
            return self._made.flow.turn
        # Nobody followed the call from node to node; what has run has dropped what it had saved.
        if self._made.call.retain_graph:
            return None
        slots = ((n, list(saved.slots(node))) for n, node in enumerate(self._walked.nodes))
        return next((n for n, kept in slots if kept and not all(s.freed for s in kept)), None)

    def _marked(self) -> int | None:
        """The first node of the Function that is marked so, if it is the only one of this graph."""
        found: dict[Any, int] = {}
        for number, node in enumerate(self._walked.nodes):
            function = getattr(type(node), "_forward_cls", None)
            if getattr(getattr(function, "backward", None), "__code__", None) is _MARK:
                found.setdefault(function, number)
        return next(iter(found.values())) if len(found) == 1 else None


def _written(code: CodeType) -> str:
    """What its author calls a function."""
    name = code.co_qualname.rpartition("<locals>.")[2]
    return "a lambda" if name == "<lambda>" else name
