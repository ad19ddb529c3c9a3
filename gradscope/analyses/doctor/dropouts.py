"""Functions that drop elements at random, called so that eval mode does not switch them off:
without their argument `training`, which is then True, or with a rate that nobody makes 0.

A Dropout module that the program itself keeps in train mode, or `training=True`, is meant.
"""

from __future__ import annotations

from torch.nn import functional

from gradscope.analyses.doctor.oddities import Oddities
from gradscope.recording.expressions import leaves_out
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

_TRAINING = frozenset(["dropout", "dropout1d", "dropout2d", "dropout3d"])
"""Those that take `training` as their third argument, which is True where it is not given."""

_ATTENTION = "scaled_dot_product_attention"
"""Drops at the rate that it is given."""


class Dropouts:
    """Such calls, in the forward of a module in eval mode."""

    def __init__(self, found: Oddities, recorder: Recorder) -> None:
        self._found = found
        self._recorder = recorder

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if call.function not in _TRAINING and call.function != _ATTENTION:
            return
        running = self._recorder.modules.running
        if running is None or running[0].training or not _drops(call) or not _is_direct(call):
            return
        site = call.places.site(call.place)
        is_attention = call.function == _ATTENTION
        written = "" if site is None else self._recorder.sources.origin(site).expression
        if is_attention or leaves_out(written, "training", 3):
            kind = "attention drops" if is_attention else "dropout kept"
            self._found.tell(kind, call.place, name=type(running[0]).__name__)


def _drops(call: TorchCall) -> bool:
    if call.function == _ATTENTION:
        rate = call.kwargs.get("dropout_p", call.args[4] if len(call.args) > 4 else 0)
        return isinstance(rate, (int, float)) and rate > 0
    return bool(call.kwargs.get("training")) and call.kwargs.get("p", 0) > 0


def _is_direct(call: TorchCall) -> bool:
    """Whether the program called the function itself, and no module of torch did."""
    inner, frame = None, call.frame
    while frame is not call.user and frame.f_back is not None:
        inner, frame = frame, frame.f_back
    return inner is None or inner.f_code.co_filename == functional.__file__
