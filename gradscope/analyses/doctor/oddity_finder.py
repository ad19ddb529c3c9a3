"""One who looks for one sort of oddity, and what is shown to all who do.

What they find may be told of a place more than once: the first figures stay, and the times are
counted.  A new one is a subclass, and a name in :mod:`gradscope.analyses.doctor.oddity_finders`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch

from gradscope.analyses.doctor.oddities import Oddities
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall


class FinderContext(NamedTuple):
    """Who is told, and what is watched."""

    found: Oddities
    recorder: Recorder


class OddityFinder:
    """Is shown what happens while calls are looked at in full; a subclass has the methods for what
    it wants to see."""

    def __init__(self, context: FinderContext) -> None:
        self._tell = context.found.tell
        self._recorder = context.recorder

    def note(self, call: TorchCall) -> None:
        """A call of torch has returned."""

    def note_backward(self, nodes: Collection[int]) -> None:
        """A call that is looked at in full has filled ``.grad``, and went through nodes of these
        numbers."""

    def note_step(self, parameters: Sequence[torch.Tensor]) -> None:
        """An optimizer with these parameters makes a step."""
