"""Making one call again, in float64 and with the same random numbers.

Knows nothing of derivatives, nor of the calls around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gradscope.autograd.isolation import functions_on
from gradscope.derivatives.call import Call, OutsideValue, TapeSlot
from gradscope.derivatives.rerun import program_runs
from gradscope.errors import GradscopeError, described
from gradscope.handlers import let_pass

Tensors = list[torch.Tensor]

_WIDE = {torch.complex32: torch.complex128, torch.complex64: torch.complex128}

_WIDENING = {
    torch.Tensor.float: torch.Tensor.double,
    torch.Tensor.half: torch.Tensor.double,
    torch.Tensor.bfloat16: torch.Tensor.double,
    torch.Tensor.cfloat: torch.Tensor.cdouble,  # type: ignore[attr-defined]
    torch.Tensor.chalf: torch.Tensor.cdouble,  # type: ignore[attr-defined]
}
"""Methods that name their dtype."""


_ASSUMED: dict[Any, Callable[[torch.Tensor], torch.Tensor]] = {
    torch.nn.functional.ctc_loss: lambda scores: scores.log_softmax(-1),
    torch.ctc_loss: lambda scores: scores.log_softmax(-1),
}
"""What torch assumes an operand to be, so that backward is right for such ones only: the logarithms
of probabilities.  An operand that is so stays as it is."""


class Unrepeatable(GradscopeError):
    """A call cannot be made again; says why."""


def coarsest(kinds: Iterable[torch.dtype]) -> torch.dtype:
    """The least precise of some types of floats; float64 of none."""
    return max(kinds, key=lambda kind: torch.finfo(kind).eps, default=torch.float64)


class Narrowest(TorchFunctionMode):
    """Sees the coarsest precision in which something is made, also inside of a custom Function:
    one that casts to float32 moves by steps, and differences in float64 tell nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.found = torch.float64

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, (tuple, list)) else (out,):
            # What has no dimension makes nothing else less precise.
            if isinstance(one, torch.Tensor) and one.dim() and one.dtype.is_floating_point:
                self.found = coarsest((self.found, one.dtype))
        return out


def widened(value: Any) -> Any:
    """A copy of a tensor in double precision; a dtype likewise; anything else as it is."""
    if isinstance(value, torch.dtype):
        return _wide(value)
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to(_wide(value.dtype), copy=True)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype.is_floating_point else _WIDE.get(dtype, dtype)


def is_wide(tensor: torch.Tensor) -> bool:
    """Whether a tensor has double precision."""
    return tensor.dtype in (torch.float64, torch.complex128)


def make_again(call: Call, operands: Callable[[TapeSlot], torch.Tensor]) -> Tensors:
    """Make one call with these operands, which it may change; the flattened result.

    Raises:
        Unrepeatable: when it cannot be made, with the reason.
    """
    if call.problem:
        raise Unrepeatable(call.problem)
    leaves = [operands(one) if isinstance(one, TapeSlot) else widened(one) for one in call.leaves]
    args, kwargs = pytree.tree_unflatten(leaves, call.spec)
    if call.function in _ASSUMED and args:
        args = (_ASSUMED[call.function](args[0]), *args[1:])
    # Whoever began all this puts the program's own states back.
    for device, state in call.random.items():
        if device.type == "cpu":
            torch.set_rng_state(state)
        else:
            torch.cuda.set_rng_state(state, device)
    seen = Narrowest()
    # In double precision whatever precision the program chose.
    with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
        try:
            is_custom = call.custom is not None
            with (
                program_runs() if is_custom else functions_on(),
                seen if is_custom else nullcontext(),
            ):
                out = _WIDENING.get(call.function, call.function)(*args, **kwargs)
        except Exception as error:
            let_pass(error)
            raise Unrepeatable(f"in float64 it raised {described(error)}") from None
    call.inside = seen.found
    if call.function is torch.nn.functional.embedding:
        _hold_padding(call, args, kwargs, out)
    return list(pytree.tree_leaves(out))


def _hold_padding(
    call: Call, args: Sequence[Any], kwargs: Mapping[str, Any], out: torch.Tensor
) -> None:
    """The row of an embedding that stands for padding is a constant to backward, whatever moves."""
    padding = call.option("padding_idx")
    weight = next((one for one in call.inputs if one.given is not None), None)
    if padding is None or weight is None or weight.given is None:
        return
    with torch.no_grad():
        indices = args[0] if args else kwargs["input"]
        row = value_of(weight.given)[padding]
        out[indices == padding % weight.given.value.shape[0]] = row


def value_of(given: OutsideValue) -> torch.Tensor:
    """A value from outside, in double precision.

    Raises:
        Unrepeatable: when the program has changed it since.
    """
    if given.is_lost:
        raise Unrepeatable("an operand was changed in place since, or its memory given back")
    return widened(given.value)  # type: ignore[no-any-return]
