"""Modules of torch's own that make one call of torch each: while calls are only glanced at, it is
the call of the module that is, and the one inside is made without anyone between.

Which modules are such is learned while all is looked at in full, of each by itself.
"""

from __future__ import annotations

import sys
import weakref
from types import FrameType
from typing import Any, NamedTuple

from torch import nn
from torch.nn.modules import module as torchs

from gradscope.analyses.doctor.call_kinds import Kind
from gradscope.analyses.doctor.glances import Glance
from gradscope.analyses.doctor.values import NonFiniteValues
from gradscope.autograd.isolation import (
    function_mode_at,
    function_modes,
    is_captured,
    pop_mode,
    push_mode,
)
from gradscope.patched import Original
from gradscope.recording.recorder import Recorder, is_traced
from gradscope.recording.recording import sequence_number
from gradscope.recording.torch_call import TorchCall

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
