"""Collectives of ``torch.distributed``, which fill tensors from those of all ranks: a cut."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch

from gradscope.analyses.doctor.cut_calls import reason_now
from gradscope.analyses.doctor.cuts import Cuts
from gradscope.autograd.tensors import requires_grad
from gradscope.patched import Original, Patched
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import flat_tensors

_FILLING = (
    *("all_gather", "all_gather_into_tensor", "gather", "all_to_all", "all_to_all_single"),
    *("reduce_scatter", "reduce_scatter_tensor", "scatter"),
)


def collectives(recorder: Recorder, cuts: Cuts) -> list[Patched]:
    """What tells of them as of the cuts that they are, where torch has them.

    Args:
        recorder: is asked for places.
        cuts: is told.
    """

    def noting(original: Original) -> Original:
        @functools.wraps(original)
        def collective(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(*args, **kwargs)
            result, reason = original(*args, **kwargs), reason_now()
            with recorder.aside():
                place = recorder.places.number_around(sys._getframe(1))
                # A Function that calls it has a backward for it.
                if place >= 0 and not recorder.functions:
                    tensors = flat_tensors(*args, *kwargs.values())
                    sent = [one for one in tensors if requires_grad(one)]
                    filled = [one for one in tensors if not requires_grad(one)]
                    cuts.note_sent((place, original.__name__, reason), filled, sent)
            return result

        return collective

    return [Patched(torch.distributed, name, noting) for name in _FILLING]
