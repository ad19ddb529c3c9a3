"""Collectives of ``torch.distributed``, which fill tensors from those of all ranks: a cut."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch

from gradscope.analyses.doctor.cut_calls import reason_now
from gradscope.analyses.doctor.cuts import Cuts
from gradscope.autograd.tensors import requires_grad
from gradscope.patched import Patched
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import flat_tensors

_FILLING = (
    *("all_gather", "all_gather_into_tensor", "gather", "all_to_all", "all_to_all_single"),
    *("reduce_scatter", "reduce_scatter_tensor", "scatter"),
)


class Collectives:
    """Tells of them as of the cuts that they are.

    Args:
        recorder: is asked for places.
        cuts: is told.
    """

    def __init__(self, recorder: Recorder, cuts: Cuts) -> None:
        self._recorder = recorder
        self._cuts = cuts
        self._patches = [Patched(torch.distributed, name, self._noting) for name in _FILLING]

    def start(self) -> None:
        """Wrap them, where torch has them."""
        for one in self._patches:
            one.start()

    def stop(self) -> None:
        """Leave all of them as they were."""
        for one in self._patches:
            one.stop()

    def _noting(self, original: Any) -> Any:
        @functools.wraps(original)
        def collective(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(*args, **kwargs)
            result, reason = original(*args, **kwargs), reason_now()
            with self._recorder.aside():
                place = self._recorder.places.number_around(sys._getframe(1))
                # A Function that calls it has a backward for it.
                if place >= 0 and not self._recorder.functions:
                    tensors = flat_tensors(*args, *kwargs.values())
                    sent = [one for one in tensors if requires_grad(one)]
                    filled = [one for one in tensors if not requires_grad(one)]
                    self._cuts.note_sent((place, original.__name__, reason), filled, sent)
            return result

        return collective
