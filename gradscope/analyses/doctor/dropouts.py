"""Functions that drop elements at random, and that a checkpoint calls again for its backward,
without the random state of the first time: torch's own that is told not to keep it, or a custom
Function whose code knows of none.
"""

from __future__ import annotations

import inspect
import re
from types import CodeType, FrameType
from typing import Any

from torch.utils.checkpoint import checkpoint

from gradscope.analyses.doctor.oddity_finder import OddityFinder
from gradscope.model.observations import OddityKind
from gradscope.recording.names import locals_of
from gradscope.recording.torch_call import TorchCall

_ATTENTION = "scaled_dot_product_attention"
"""Drops at the rate that it is given."""

_DROPPING = frozenset(
    ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"]
) | {_ATTENTION}
_CHECKPOINT = inspect.unwrap(checkpoint).__code__
_OF_STATE = re.compile("rng|seed|random|state")
"""What the names in code that keeps a random state have in them."""


class Dropouts(OddityFinder):
    """Such calls."""

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        self.note_inside(call)

    def note_inside(self, call: TorchCall) -> None:
        """Look at one call, be it in a custom Function: is it made again, with other numbers?"""
        if call.function not in _DROPPING or not _drops(call):
            return
        codes = {one.forward.__code__: one for one in self._recorder.functions if _runs_again(one)}
        frame: FrameType | None = call.frame
        while frame is not None:
            code = frame.f_code
            is_kept = code is not _CHECKPOINT or locals_of(frame).get("preserve", True)
            user = call.places.user_frame(frame)
            if user is not None and (not is_kept or code in codes):
                name = codes[code].__name__ if code in codes else ""
                kind: OddityKind = "other numbers" if is_kept else "state not kept"
                self._tell(kind, call.places.number(user), name=name, other=call.place)
                return
            frame = frame.f_back


def _runs_again(function: Any) -> bool:
    """Whether a custom Function computes with history in its backward, and nothing in its code
    speaks of a random state."""
    codes = [getattr(one, "__code__", None) for one in (function.forward, function.backward)]
    names = [code.co_names + code.co_varnames for code in codes if isinstance(code, CodeType)]
    is_known = len(names) == 2 and "enable_grad" in names[1]
    return is_known and not any(_OF_STATE.search(one) for one in (*names[0], *names[1]))


def _drops(call: TorchCall) -> bool:
    if call.function == _ATTENTION:
        rate = call.kwargs.get("dropout_p", call.args[4] if len(call.args) > 4 else 0)
        return isinstance(rate, (int, float)) and rate > 0
    return bool(call.kwargs.get("training")) and call.kwargs.get("p", 0) > 0
