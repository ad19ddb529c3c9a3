"""A ``squeeze()`` that names no dimension, and takes the axis of the samples along where a batch
has one: looked for behind the call of forward by which the program has ended."""

from __future__ import annotations

from typing import Any

import torch

from gradscope.analyses.doctor.ancestry import MAX_BEHIND
from gradscope.analyses.doctor.oddities import MAX_PLACES
from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.autograd.nodes import torch_name
from gradscope.autograd.tensors import grad_fn_of
from gradscope.graphing.raised import failed_call, operands
from gradscope.recording.names import locals_of
from gradscope.recording.torch_call import TorchCall, flat_tensors

_OF_SHAPES = (RuntimeError, ValueError, IndexError, AssertionError)


class Squeezes(OddityFinder):
    """How many dimensions such a call was given, and left, by its place."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._dims: dict[int, tuple[int, int]] = {}

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if call.function == "squeeze" and len(call.args) == 1 and not call.kwargs and call.in_graph:
            given = call.args[0]
            if given.dim() and len(given) > 1 and len(self._dims) < MAX_PLACES:
                self._dims.setdefault(call.place, (given.dim(), call.results[0].dim()))

    def note_failure(self, error: BaseException) -> None:
        """The program has ended by this."""
        if not self._dims or not isinstance(error, _OF_SHAPES):
            return
        failed = failed_call(self._recorder, error)
        came = _held(error) if failed is None else operands(failed)
        stack: list[Any] = list(map(grad_fn_of, came))
        seen = set[Any]()
        while stack and len(seen) < MAX_BEHIND:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            stack.extend(target for target, _ in node.next_functions)
            # Of those that name a dimension the name has another number.
            if torch_name(node) == "SqueezeBackward0":
                sizes = tuple(map(int, node._saved_self_sym_sizes))
                place = self._recorder.place_of(self._recorder.spans.of(node._sequence_nr()))
                given, left = self._dims.get(place, (0, 0))
                if sizes[:1] == (1,) and len(sizes) == given and left > sum(n > 1 for n in sizes):
                    self._tell(
                        "batch squeezed",
                        place,
                        *sizes,
                        other=-1 if failed is None else failed.place,
                    )


def _held(error: BaseException) -> list[torch.Tensor]:
    """The tensors in the function that raised: a layer's own check of what it was given."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return [] if step is None else flat_tensors(locals_of(step.tb_frame))
