"""What is done at a call of torch that is only glanced at: the short way of nearly all.

A step of a small model makes hundreds of such calls, between operations that leave nothing of ours
in the caches, so what is asked is written out, and looked up as seldom as can be.

Of modules of torch's own that make one call of torch each, it is the call of the module that is
glanced at, and the one inside is made without anyone between.  Which modules are such is learned
while all is looked at in full, of each by itself.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal, NamedTuple

import torch
from torch import nn
from torch.autograd import profiler
from torch.nn.modules import module as torchs

from gradscope.analyses.doctor.values import NonFiniteValues, may_pass, passes
from gradscope.autograd.isolation import (
    dispatch_modes,
    function_mode_at,
    function_modes,
    functions_off,
    is_captured,
    pop_mode,
    push_mode,
)
from gradscope.autograd.tensors import flat_tensors
from gradscope.patched import Original
from gradscope.recording.events import own_change
from gradscope.recording.recorder import Recorder, is_traced
from gradscope.recording.recording import sequence_number
from gradscope.recording.torch_call import MAX_LATEST, TorchCall, name_of_call

# ---------------------------------------------------------------- what is known before any call

Sort = Literal["none", "event", "data", "call", "grad", "put", "switch", "hook"]

_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]

_READ = frozenset(["data", "T", "mT", "H", "mH", "real", "imag"])
"""Properties that give a tensor; of the others only ``grad`` matters."""

_HOOKS = frozenset(["register_hook", "register_post_accumulate_grad_hook"])

_SILENT = """dim size numel stride is_complex is_floating_point is_contiguous element_size data_ptr
    storage_offset untyped_storage retain_grad get_device has_names _record_function_enter_new
    _record_function_exit"""
_NEVER = frozenset(_SILENT.split())

_OF_CLASSES = """binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss
    multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss
    hinge_embedding_loss"""
_DISTANCES = "gaussian_nll_loss huber_loss kl_div l1_loss mse_loss poisson_nll_loss smooth_l1_loss"
LOSSES = frozenset(f"{_OF_CLASSES} {_DISTANCES}".split())
"""Functions of torch that compare a prediction, given first, with a target."""


@dataclass(slots=True)
class Kind:
    """What is known of a torch function: how its calls are taken, and the places that make any; of
    a loss, ``recorded`` are those of which one had history.

    ``passes``: what :func:`~gradscope.analyses.doctor.values.may_pass` says of it.  ``data`` counts
    the calls at each place that had nothing to do with any graph.
    """

    func: Any
    sort: Sort
    name: str
    is_brief: bool
    is_loss: bool
    passes: bool | None
    places: set[int] = field(default_factory=set)
    recorded: set[int] = field(default_factory=set)
    data: dict[int, int] = field(default_factory=dict)


def kind_of(func: Any, is_plain: bool) -> Kind:
    """What is known of a function that was not met before.

    Args:
        func: the function.
        is_plain: it neither changes its operands nor calls backward.
    """
    sort, name = _sort_of(func), name_of_call(func)
    is_brief = is_plain and sort == "call" and name != "requires_grad_"
    return Kind(func, sort, name, is_brief, name in LOSSES, may_pass(name))


def _sort_of(func: Any) -> Sort:
    name = str(getattr(func, "__name__", func))
    if name in ("__get__", "__set__", "__delete__"):
        accessed = name_of_call(func)
        if accessed == "grad":
            return "grad" if name == "__get__" else "put"
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
        if kind.is_loss and (made < 0 or place not in kind.recorded):
            return False  # whether it has history is asked until it had some
        # On the way of what is not finite each result is read.
        is_fine = values.is_clean and (
            kind.passes or (kind.passes is None and passes(kind.name, args))
        )
        if made >= 0:
            return is_fine or values.is_fine(out, made, kind.name, args, kwargs)
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


# ---------------------------------------------------------------- calls of modules

MAX_MODULES = 100_000
"""Modules that are remembered."""


class _Single(NamedTuple):
    """A module, the function of torch that it calls, and what is known of that."""

    module: weakref.ref[nn.Module]
    function: Any
    kind: Kind


class ModuleGlances:
    """Makes the calls of modules.

    ``heard`` counts the calls of torch that were looked at in full, ``last`` is the function of the
    last one, what is known of it, and the id of its result.
    """

    def __init__(self, recorder: Recorder, values: NonFiniteValues, glance: Glance) -> None:
        self.heard = 0
        self.last: tuple[Any, Kind | None, int] = (None, None, 0)
        self._recorder = recorder
        self._values = values
        self._glance = glance
        self._singles: dict[int, _Single] = {}

    def run(
        self, original: Original, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Make the call of a module."""
        recorder = self._recorder
        if not (recorder.is_light and recorder.listeners.glanced):
            return self._learning(original, module, args, kwargs)
        single = self._singles.get(id(module))
        if (
            single is None
            or single.module() is not module
            # Call by call: in a custom Function, and on the way of what is not finite.
            or recorder.functions
            or not self._values.is_clean
            # What the program has added to it since.
            or module._modules
            or "forward" in module.__dict__
            or module._forward_hooks
            or module._forward_pre_hooks
            or module._backward_hooks
            or module._backward_pre_hooks
            or torchs._global_forward_hooks
            or torchs._global_forward_pre_hooks
            or torchs._global_backward_hooks
            or torchs._global_backward_pre_hooks
            # Somebody else hears of the call, or no one does.
            or function_modes() != 1
            or function_mode_at(0) is not recorder
            or is_traced()
            or is_captured()
        ):
            return original(module, *args, **kwargs)
        pop_mode()
        try:
            return self._made(single, original, module, args, kwargs, sys._getframe(2))
        finally:
            if Recorder.active is recorder:
                push_mode(recorder)

    def _made(
        self,
        single: _Single,
        original: Original,
        module: nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
    ) -> Any:
        recorder, function, first = self._recorder, single.function, sequence_number()
        # What torch's own modules hand on: the parameters, in this order.
        given = (*args, *module._parameters.values())
        try:
            out = original(module, *args, **kwargs)
        except Exception as error:
            recorder.note_failed(error, function, given, kwargs, first, frame)
            raise
        try:
            is_done = self._glance(single.kind, given, kwargs, first, out, frame)
        except Exception as error:
            recorder.note_fault(error)
            is_done = False
        if is_done:
            recorder.failed = None
        else:
            made = (first, sequence_number())
            call = TorchCall(function, given, kwargs, made, out, frame, recorder.places)
            recorder.note_call(call, recorder.listeners.unopened)
        return out

    def _learning(
        self, original: Original, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        before = self.heard
        out = original(module, *args, **kwargs)
        function, kind, result = self.last
        is_single = self.heard == before + 1 and result == id(out) and self._is_plain(module)
        if kind is not None and is_single and len(self._singles) < MAX_MODULES:
            self._singles[id(module)] = _Single(weakref.ref(module), function, kind)
        else:
            self._singles.pop(id(module), None)
        return out

    def _is_plain(self, module: nn.Module) -> bool:
        """Whether nothing but torch's own code runs in a call of this module."""
        running = self._recorder.modules.running
        is_library = running is not None and running[0] is module and running[1].is_library
        return is_library and not module._modules and "forward" not in vars(module)
