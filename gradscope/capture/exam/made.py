"""A backward call of the program that is made while somebody looks, as closely as he likes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.autograd.graph import Node as LiveNode

from gradscope.capture.calls import BackwardCall, edge_of
from gradscope.capture.recorder import Recorder


class MadeCall:
    """A call that is about to be made, and then how it ended.

    Args:
        call: the call.
        recorder: what is known of how the graph was made.
        number: counts the program's calls from 1.
    """

    def __init__(self, call: BackwardCall, recorder: Recorder, number: int) -> None:
        self.call = call
        self.number = number
        self.failure: BaseException | None = None
        self.result: Any = None
        self.recorder = recorder
        self.ends = [edge_of(root) for root in call.roots]
        """The node and output number of every root."""

    def make(self, nodes: Sequence[LiveNode]) -> None:
        """Make the call, whose graph has these nodes."""
        try:
            self.result = self.recorder.let_run(self.call, nodes=nodes)
        except Exception as error:  # the program's own: it is raised again when we have looked
            self.failure = error

    def conclude(self) -> Any:
        """End the call as it ended: return its result or raise its exception."""
        if self.failure is not None:
            raise self.failure
        return self.result
