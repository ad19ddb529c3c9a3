"""A backward call of the program that is made while somebody looks, as closely as he likes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.recording.recorder import Recorder


class MadeCall(ABC):
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

    @property
    @abstractmethod
    def nodes(self) -> Sequence[LiveNode]:
        """The nodes of the graph."""

    @property
    @abstractmethod
    def leaves(self) -> list[torch.Tensor]:
        """The leaves of the graph that still live."""

    @abstractmethod
    def reached(self) -> list[torch.Tensor]:
        """The leaves that the call brought a gradient."""

    @abstractmethod
    def leaf_norms(self) -> Iterator[tuple[torch.Tensor, float]]:
        """The 2-norm of what arrived at each leaf, where something did."""

    def outside(self) -> list[torch.Tensor]:
        """Tensors that the call wants the gradient of, and that are not in its graph."""
        inside = set(self.nodes)
        return [
            tensor
            for tensor in self.call.inputs
            if isinstance(tensor, torch.Tensor) and edge_of(tensor)[0] not in inside
        ]

    def conclude(self) -> Any:
        """End the call as it ended: return its result or raise its exception."""
        if self.failure is not None:
            raise self.failure
        return self.result
