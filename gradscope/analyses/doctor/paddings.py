"""Padding that is used as if it was data: a fixed position taken from padded sequences, most of
which have ended before it; a row of an embedding that is never to learn, looked up for a sample.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.autograd.elements import is_small
from gradscope.autograd.tensors import TensorTable, requires_grad
from gradscope.recording.torch_call import TorchCall

MAX_PADDED = 64
"""Padded sequences that are remembered."""

LOOKS = 3
"""Calls of each place whose numbers are read."""

LARGEST = 100_000
"""Indices that are read."""


class _Padded(NamedTuple):
    lengths: torch.Tensor
    batch_first: bool


class Paddings(OddityFinder):
    """What is taken from padded sequences, and looked up."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._padded: TensorTable[_Padded] = TensorTable(MAX_PADDED)
        self._looks: dict[int, int] = {}

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if not call.in_graph:
            return
        if call.function == "_pad_packed_sequence":
            padded, lengths = call.results
            self._padded[padded] = _Padded(lengths, bool(call.args[2]))
        elif call.function == "index_select" and len(call.args) == 3:
            self._sort(call)
        elif call.function == "getitem" and self._padded and self._may_look(call):
            self._take(call)
        elif call.function == "embedding" and len(call.operands) > 1 and self._may_look(call):
            self._look_up(call)

    def _may_look(self, call: TorchCall) -> bool:
        looks = self._looks[call.place] = self._looks.get(call.place, 0) + 1
        return looks <= LOOKS

    def _sort(self, call: TorchCall) -> None:
        known = self._padded.get(call.args[0])
        dim, index = call.args[1:3]
        if known is not None and index.device == known.lengths.device and dim != known.batch_first:
            lengths = known.lengths.index_select(0, index)
            self._padded[call.results[0]] = known._replace(lengths=lengths)

    def _take(self, call: TorchCall) -> None:
        tensor, index = call.args
        known, out = self._padded.get(tensor), call.results[0]
        if known is None or out.dim() != tensor.dim() - 1:
            return
        steps = torch.arange(tensor.shape[known.batch_first], device=known.lengths.device)
        inside = steps < known.lengths[:, None]
        inside = inside if known.batch_first else inside.t()
        inside = inside.view(*inside.shape, *[1] * (tensor.dim() - 2)).expand(tensor.shape)
        taken = inside.to(tensor.device)[index]
        samples = len(known.lengths)
        if taken.shape == out.shape and taken.numel() % samples == 0:
            padding = int((~taken).sum()) * samples // taken.numel()
            self._tell("padding taken", call.place, padding, samples)

    def _look_up(self, call: TorchCall) -> None:
        names = ("input", "weight", "padding_idx")
        given: dict[str, Any] = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
        row: int | None = given.get("padding_idx")
        # `torch.embedding` takes the first two the other way round.
        index, weight = sorted(call.operands[:2], key=torch.Tensor.is_floating_point)
        if row is None or index.dim() != 1 or not requires_grad(weight):
            return
        # What was flattened was a sequence, and has an end.
        is_flat = index._base is not None and index._base.numel() == index.numel()
        still = weight.detach()[row]
        if is_flat or not is_small(index, LARGEST) or not is_small(still, LARGEST):
            return
        looked_up, made = int((index == row % len(weight)).sum()), self._made(weight)
        if looked_up and bool(still.any()):
            self._tell("padding row", made if made >= 0 else call.place, looked_up, len(index), row)
