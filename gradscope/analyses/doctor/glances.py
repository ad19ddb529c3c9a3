"""What is done at a call of torch that is only glanced at: the short way of nearly all.

A step of a small model makes hundreds of such calls, between operations that leave nothing of ours
in the caches, so what is asked is written out, and looked up as seldom as can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

import torch
from torch.autograd import profiler

from gradscope.analyses.doctor.values import PASSING, NonFiniteValues
from gradscope.autograd.isolation import dispatch_modes, function_modes, functions_off
from gradscope.autograd.nodes import sequence_number
from gradscope.autograd.tensors import flat_tensors
from gradscope.recording.events import own_change
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import MAX_LATEST, name_of_call

# ---------------------------------------------------------------- what is known before any call

Sort = Literal["none", "event", "data", "call", "grad", "switch", "hook"]

_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]

_READ = frozenset(["data", "T", "mT", "H", "mH", "real", "imag"])
"""Properties that give a tensor; of the others only ``grad`` matters."""

_HOOKS = frozenset(["register_hook", "register_post_accumulate_grad_hook"])

_SILENT = """dim size numel stride is_complex is_floating_point is_contiguous element_size data_ptr
    storage_offset untyped_storage retain_grad get_device has_names _record_function_enter_new
    _record_function_exit"""
_NEVER = frozenset(_SILENT.split())


@dataclass(slots=True)
class Kind:
    """What is known of a torch function: how its calls are taken, and the places that make any.

    ``passes``: its results are finite where its operands are.  ``data`` counts the calls at each
    place that had nothing to do with any graph.
    """

    func: Any
    sort: Sort
    name: str
    is_brief: bool
    passes: bool
    places: set[int] = field(default_factory=set)
    data: dict[int, int] = field(default_factory=dict)


def kind_of(func: Any, is_plain: bool) -> Kind:
    """What is known of a function that was not met before.

    Args:
        func: the function.
        is_plain: it neither changes its operands nor calls backward.
    """
    sort, name = _sort_of(func), name_of_call(func)
    is_brief = is_plain and sort == "call" and name != "requires_grad_"
    return Kind(func, sort, name, is_brief, name in PASSING)


def _sort_of(func: Any) -> Sort:
    name = str(getattr(func, "__name__", func))
    if name in ("__get__", "__set__", "__delete__"):
        accessed = name_of_call(func)
        if accessed == "grad":
            return "grad" if name == "__get__" else "none"
        if name == "__set__":
            return "data" if func == _SET_DATA else "event"
        return "call" if accessed in _READ else "none"
    if name in _NEVER or name.startswith("_record_function_exit"):
        return "none"
    # `no_grad`, `enable_grad` and `set_grad_enabled` all come down to it.
    if func is torch._C._set_grad_enabled:
        return "switch"
    return "hook" if name in _HOOKS else "call"


# ---------------------------------------------------------------- calls of functions

Glance = Callable[[Kind, tuple[Any, ...], dict[str, Any], int, Any, FrameType], bool]
"""As :meth:`gradscope.recording.listener.Listener.briefly`."""

OFTEN = 20
"""Calls with data alone that are heard in full at one place: a loop over samples makes thousands,
mostly before anything is learned."""

CLIPPING = torch.nn.utils.clip_grad.__file__
"""What is computed there of gradients comes into no graph."""


def is_data(
    args: tuple[Any, ...], kwargs: dict[str, Any], is_followed: Callable[[torch.Tensor], bool]
) -> bool:
    """Whether a call takes tensors, and none that has to do with any graph."""
    operands = flat_tensors(args, kwargs) if kwargs else flat_tensors(args)
    return bool(operands) and not any(
        type(one) is not torch.Tensor or one.requires_grad or is_followed(one) for one in operands
    )


def glancing(
    recorder: Recorder, values: NonFiniteValues, is_followed: Callable[[torch.Tensor], bool]
) -> Glance:
    """What remembers a call, if its place is known and its result is finite; ``is_followed``: what
    becomes of a tensor without history is asked."""
    places, events, functions = recorder.places, recorder.events, recorder.functions
    numbers, skipped = places.numbers, places.skipped
    spans, latest = recorder.spans, recorder.spans.latest

    def is_known(
        kind: Kind, args: tuple[Any, ...], kwargs: dict[str, Any], made: int, out: Any, place: int
    ) -> bool:
        """Whether there is nothing to hear of a result; ``made``: the number of its node, or -1."""
        if not recorder.is_light and not is_data(args, kwargs, is_followed):
            return False
        # On the way of what is not finite each result is read.
        is_fine = values.is_clean and kind.passes
        if made >= 0:
            return is_fine or values.is_fine(out)
        if kwargs and (own_change(args, kwargs) or events.changes(kind.func, kwargs)):
            return False
        if not isinstance(out, torch.Tensor):
            # Numbers tell nothing, and tensors in a container are no variables.
            return is_fine or not isinstance(out, (list, tuple, dict))
        if type(out) is not torch.Tensor or out.requires_grad:
            return False
        if not is_fine and not values.is_plain_fine(out, is_inside=bool(functions)):
            return False
        events.note_plain(kind.func, args, out, places.site(place))
        return True

    def glance(
        kind: Kind,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        first: int,
        out: Any,
        frame: FrameType,
    ) -> bool:
        end = sequence_number()
        # Nothing is there to be remembered of `contiguous()` of what is contiguous.
        if first == end and args and out is args[0]:
            return True
        user: FrameType | None = frame
        while user is not None and id(user.f_code) in skipped:
            user = user.f_back
        place = None if user is None else numbers.get((id(user.f_code), user.f_lasti))
        if place not in kind.places:
            return frame.f_code.co_filename == CLIPPING
        made = -1 if first == end else end - 1
        # A look at a graph is to be a whole one.
        if not recorder.is_light and (made >= 0 or functions or kind.data.get(place, 0) < OFTEN):
            return False
        if profiler._is_profiler_enabled or dispatch_modes() or function_modes():
            with functions_off():
                is_done = is_known(kind, args, kwargs, made, out, place)
        else:
            is_done = is_known(kind, args, kwargs, made, out, place)
        if is_done and made >= 0:
            latest.extend((first, end, place))
            if len(latest) > MAX_LATEST:
                spans.settle()
        return is_done or frame.f_code.co_filename == CLIPPING

    return glance
