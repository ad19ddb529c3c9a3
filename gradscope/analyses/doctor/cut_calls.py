"""What one call of torch tells by itself: whether it gives values, and what it does with a result
without history that it takes.
"""

from __future__ import annotations

from typing import Any

import torch

from gradscope.analyses.doctor.known_cuts import KnownCut
from gradscope.autograd.elements import is_small, readable
from gradscope.autograd.tensors import is_leaf_tensor, requires_grad
from gradscope.model.observations import CutReason
from gradscope.recording.torch_call import TorchCall

LARGEST = 4_096
"""Elements of a term that are looked at."""


def family(names: str) -> frozenset[str]:
    """Functions of torch, by their names."""
    return frozenset(names.split())


NUMBERS = family("item tolist numpy float int bool complex index array")
JOINING = family("cat concat concatenate stack hstack vstack dstack column_stack")
SHARING = ("data", "detach")
ENTERING = JOINING | family(
    "linear matmul mm bmm addmm baddbmm einsum bilinear rmatmul prelu "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "layer_norm group_norm batch_norm instance_norm rms_norm "
    "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell "
    "scaled_dot_product_attention multi_head_attention_forward"
)
"""What a layer does, and what puts things side by side."""

ADDING = family("add radd iadd add_ sub rsub isub sub_ stack")
HARMLESS = family(
    "grad requires_grad_ retain_grad register_hook register_post_accumulate_grad_hook "
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like "
    "new_zeros new_ones new_empty new_full new_empty_strided "
    "shape size repr format str len hash set_ __reduce_ex__ deepcopy"
)
"""What these give is a shape, a text, a hook or a tensor of new content: nobody expects a gradient
to come back through them."""


def is_taken_off(call: TorchCall, cut: KnownCut) -> bool:
    """Whether a constant is subtracted, as the entropy of a target is to make a divergence."""
    return (
        cut.reason == "constant"
        and call.function in ("sub", "isub")
        and isinstance(call.args[0], torch.Tensor)
        and requires_grad(call.args[0])
    )


def is_nothing(tensor: torch.Tensor) -> bool:
    """Whether all of a small tensor is 0; of one that would have to be waited for nobody knows."""
    return tensor.is_cpu and is_small(tensor, LARGEST) and not bool(tensor.any())


def is_continuous(tensor: torch.Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def if_same_line(call: TorchCall, place: int) -> str:
    here, there = call.places.line(call.place), call.places.line(place)
    return call.function if here is not None and here == there else ""


def reason_now() -> CutReason:
    # Asked first: in inference mode grad is switched off as well.
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    return "function" if torch.is_grad_enabled() else "no_grad"


def reason_of(function: str) -> CutReason:
    """Why what a custom Function of this name uses inside is cut off."""
    return "checkpoint" if "Checkpoint" in function else "function"


def compared(call: TorchCall) -> list[torch.Tensor]:
    """The prediction and the target, as torch's loss functions name them."""
    given: list[Any] = [*call.args[:2]]
    given += [call.kwargs[name] for name in ("input", "target") if name in call.kwargs]
    return [one for one in given if isinstance(one, torch.Tensor)]


def is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors hold the same numbers."""
    is_alike = one.shape == other.shape and one.dtype == other.dtype
    return is_alike and readable(one) and readable(other) and torch.equal(one, other)


def gives_values(call: TorchCall) -> bool:
    """Whether the result depends on the elements of its operands, and has no history."""
    if not call.results:
        return call.function in NUMBERS
    # A new leaf made of tensors with history (torch.tensor(list, requires_grad=True)) is cut too;
    # the very operand back is not.
    operands = {id(tensor) for tensor in call.operands}
    return not any(
        requires_grad(tensor) and (id(tensor) in operands or not is_leaf_tensor(tensor))
        for tensor in call.results
    )
