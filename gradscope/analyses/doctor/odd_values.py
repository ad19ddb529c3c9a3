"""Log-probabilities that are weighted by what has a gradient of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from gradscope.analyses.doctor.ancestry import leaves_behind
from gradscope.analyses.doctor.cut_calls import MAX_FOLLOWED, family
from gradscope.analyses.training.loop_order import MistakenCalls
from gradscope.autograd.tensors import TensorRef, TensorTable, living, requires_grad
from gradscope.recording.names import locals_of
from gradscope.recording.torch_call import TorchCall

_FOLDER = str(Path(torch.distributions.__file__).parent)
_CARRYING = family(
    "neg sum squeeze unsqueeze view reshape flatten getitem select stack cat add radd iadd"
)
_MULTIPLYING = ("mul", "rmul", "multiply")

MAX_WAITING = 200
"""Products that wait for a backward call, or for a step after it."""


@dataclass
class _Product:
    """A product with what learns: its node, its place, the leaves behind the other factor, and
    their gradients after the call that went through it."""

    node: int
    place: int
    leaves: list[TensorRef]
    gradients: list[TensorRef] = field(default_factory=list)


class ScoreWeights:
    """The log-probability of a sample, multiplied by what has a gradient of its own: in a policy
    gradient that is a return, a reward or a baseline, and no parameter behind it is to learn from
    it.

    ``found`` is told only where a step then uses that gradient: some programs drop it.
    """

    def __init__(self, found: MistakenCalls) -> None:
        self._found = found
        # What `sample` gave, and what is the logarithm of its probability.
        self._samples: TensorTable[bool] = TensorTable(MAX_FOLLOWED)
        self._scores: TensorTable[bool] = TensorTable(MAX_FOLLOWED)
        self._waiting: list[_Product] = []

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        code = call.frame.f_code
        if code.co_filename.startswith(_FOLDER):
            if code.co_name == "sample":
                for one in call.results:
                    self._samples[one] = True
            elif code.co_name == "log_prob" and call.in_graph:
                # The last of its calls gives what it returns.
                value = locals_of(call.frame).get("value")
                if value in self._samples or getattr(value, "_base", None) in self._samples:
                    self._scores[call.results[0]] = True
        elif self._scores and call.in_graph and any(one in self._scores for one in call.operands):
            if call.function in _MULTIPLYING:
                self._multiply(call)
            if call.function in _MULTIPLYING or call.function in _CARRYING:
                self._scores[call.results[0]] = True

    def _multiply(self, call: TorchCall) -> None:
        weights = [one for one in call.operands if one not in self._scores and requires_grad(one)]
        # A single number is a temperature, or a weight of the term.
        if weights and weights[0].numel() > 1:
            leaves = list(map(TensorRef, leaves_behind(weights)))
            self._waiting.append(_Product(call.sequence_range[1] - 1, call.place, leaves))
            del self._waiting[:-MAX_WAITING]

    def note_backward(self, nodes: Collection[int]) -> None:
        """A call of backward went through the nodes with these sequence numbers."""
        for product in self._waiting:
            if product.node in nodes:
                grads = [leaf.grad for leaf in living(product.leaves)]
                product.gradients = [TensorRef(one) for one in grads if one is not None]

    def note_step(self, parameters: Iterable[torch.Tensor]) -> None:
        """An optimizer with these parameters makes a step."""
        if any(product.gradients for product in self._waiting):
            used = {id(one.grad) for one in parameters if one.grad is not None}
            for product in list(self._waiting):
                if any(id(one) in used for one in living(product.gradients)):
                    self._found.tell("weight learns", product.place, len(product.leaves))
                    self._waiting.remove(product)
