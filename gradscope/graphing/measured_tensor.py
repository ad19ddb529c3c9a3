"""Which gradient was measured already.

Knows nothing of nodes, edges or numbers.
"""

from __future__ import annotations

import weakref

import msgspec
import torch

from gradscope.autograd.elements import are_the_same, is_usual


class MeasuredTensor(msgspec.Struct, frozen=True, gc=False):
    """A gradient tensor that was measured: weakly, at which version, and its entry in the table.

    ``version`` is -1 where torch counts none.
    """

    # Weakly: of a gradient that somebody holds an AccumulateGrad has to make a copy for `.grad`.
    tensor: weakref.ref[torch.Tensor]
    version: int
    entry: int

    def is_still(self, gradient: torch.Tensor) -> bool:
        """Whether this is that very tensor, unchanged since."""
        is_it = self.tensor() is gradient
        return is_it and (self.version == -1 or self.version == gradient._version)

    def shows(self, gradient: torch.Tensor) -> bool:
        """Whether a gradient is that tensor in another shape, unchanged since."""
        one = self.tensor()
        if one is None or self.version == -1 or gradient.is_inference() or not is_usual(one):
            return False
        return self.version == gradient._version and are_the_same(one, gradient)
