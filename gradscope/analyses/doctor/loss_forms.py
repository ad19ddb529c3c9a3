"""Losses that the program puts together itself, of what they are not made for: an overlap of masks
(Dice, IoU) of numbers that are no probabilities; a focal weight of a loss that is averaged already;
and targets of `ctc_loss` that hold the blank, which only stands between them.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch

from gradscope.analyses.doctor.call_kinds import LOSSES
from gradscope.analyses.doctor.known_cuts import MAX_FOLLOWED
from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.autograd.elements import is_small
from gradscope.autograd.tensors import TensorTable, requires_grad
from gradscope.recording.torch_call import TorchCall

LOOKS = 3
"""Calls of each place whose numbers are read."""

LARGEST = 4_000_000
"""Elements that are read."""

NEAR = 1e-3
"""How far a probability may be beyond 0 and 1, by rounding."""

_PRODUCTS = ("mul", "rmul", "multiply")
_DIVISIONS = ("div", "truediv", "divide", "true_divide")
_SUMS = ("add", "radd", "iadd", "sub")
_KEEPING = (*_SUMS, *_PRODUCTS, "sum", "view", "reshape", "flatten", "float", "squeeze", "clamp")

Sort = Literal[
    "overlap", "score", "size", "union", "average", "negated", "probability", "rest", "weight"
]


class _Part(NamedTuple):
    """What a tensor is a part of, where that begins, and of how many elements."""

    sort: Sort
    place: int
    of: int


_NEXT: dict[tuple[Sort, str], Sort] = {
    # (1 - exp(-loss)) ** gamma
    ("average", "neg"): "negated",
    ("negated", "exp"): "probability",
    ("probability", "rsub"): "rest",
    ("probability", "sub"): "rest",
    ("rest", "pow"): "weight",
    # score.sum() + mask.sum(); (score + mask).sum()
    ("score", "pow"): "score",
    ("score", "sum"): "size",
}


class LossForms(OddityFinder):
    """The parts of such losses."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._parts: TensorTable[_Part] = TensorTable(MAX_FOLLOWED)
        self._looks: dict[int, int] = {}

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if (
            not call.in_graph
            or len(call.results) != 1
            or len(call.operands) < 1 + (call.function in LOSSES)
            or not call.is_plain
        ):
            return
        name, out, first = call.function, call.results[0], call.operands[0]
        if name == "ctc_loss":
            self._look_for_blank(call)
        elif name in LOSSES and out.dim() == 0 and (size := call.operands[1].numel()) > 1:
            self._parts[out] = _Part("average", call.place, size)
        elif name in _PRODUCTS and len(call.operands) == 2:
            self._multiply(call)
        elif (known := self._parts.get(first) or self._parts.get(call.operands[-1])) is not None:
            other = next((one for one in call.operands if one not in self._parts), None)
            is_constant = other is not None and not requires_grad(other)
            if after := _NEXT.get((known.sort, name)):
                self._parts[out] = known._replace(sort=after)
            elif known.sort in ("score", "size") and name in _SUMS and is_constant:
                self._parts[out] = known._replace(sort="union")
            elif known.sort == "overlap" and name in _DIVISIONS:
                below = self._parts.get(call.operands[-1])
                if below is not None and below.sort == "union" and below.place == known.place:
                    self._tell("no probability", known.place, other=call.place)
            elif known.sort in ("overlap", "size", "union", "weight") and name in _KEEPING:
                self._parts[out] = known

    def _multiply(self, call: TorchCall) -> None:
        parts = [part for one in call.operands if (part := self._parts.get(one)) is not None]
        sorts = {part.sort: part for part in parts}
        weight, average = sorts.get("weight"), sorts.get("average")
        if weight is not None and average is not None and weight.place == average.place:
            self._tell("averaged first", weight.place, weight.of)
        elif weight is not None:
            self._parts[call.results[0]] = weight
        elif sorts.keys() <= {"score"}:
            score, mask = sorted(call.operands, key=requires_grad, reverse=True)
            is_alike = score.shape == mask.shape and score.dim() > 0
            if is_alike and not requires_grad(mask) and self._is_beyond(call, score, mask):
                self._parts[score] = _Part("score", call.place, score.numel())
                self._parts[call.results[0]] = _Part("overlap", call.place, score.numel())

    def _is_beyond(self, call: TorchCall, score: torch.Tensor, mask: torch.Tensor) -> bool:
        """Whether what is multiplied by a mask of zeros and ones is no probability."""
        looks = self._looks[call.place] = self._looks.get(call.place, 0) + 1
        if looks > LOOKS or not (is_small(score, LARGEST) and is_small(mask, LARGEST)):
            return False
        if score.is_complex():
            return False
        if not bool(((mask == 0) | (mask == 1)).all()) or not bool((mask == 1).any()):
            return False
        still = score.detach()
        return bool((still < -NEAR).any()) or bool((still > 1 + NEAR).any())

    def _look_for_blank(self, call: TorchCall) -> None:
        names = ("log_probs", "targets", "input_lengths", "target_lengths", "blank")
        given: dict[str, Any] = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
        targets, blank = given["targets"], given.get("blank", 0)
        looks = self._looks[call.place] = self._looks.get(call.place, 0) + 1
        if looks > LOOKS or not is_small(targets, LARGEST):
            return
        lengths = torch.as_tensor(given["target_lengths"], device=targets.device)
        if targets.dim() == 2:
            inside = torch.arange(targets.shape[1], device=targets.device) < lengths[:, None]
            targets = targets[inside]
        if blanks := int((targets == blank).sum()):
            self._tell("blank told", call.place, blanks, targets.numel(), blank)
