"""The optimizers of a program, and what they hold."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.optim import Optimizer


def living_optimizers() -> list[Any]:
    """All optimizers that live, also those that have never made a step."""
    kinds = list(_kinds())
    # The collector's own search takes a part of the time that one in python takes.
    found = gc.get_referrers(*kinds) if kinds else []
    # `isinstance` would ask each of them for `__class__`, which may be computed.
    return [thing for thing in found if issubclass(type(thing), Optimizer)]


_WRAPS_STEPS = hasattr(Optimizer, "_patch_step_function")


def _kinds() -> Iterator[type]:
    """The classes of optimizers that may have any."""
    waiting: list[Any] = [Optimizer]
    while waiting:
        kind = waiting.pop()
        waiting += type.__subclasses__(kind)
        # Torch's constructor wraps the step of a class when the first one is made.
        if getattr(kind.step, "hooked", False) or not (_WRAPS_STEPS and _calls_torch_s(kind)):
            yield kind


def _calls_torch_s(kind: Any) -> bool:
    """Whether a class is made by torch's constructor, or its own calls that, as far as it shows."""
    made = kind.__init__
    names = getattr(getattr(made, "__code__", None), "co_names", ())
    return "__init__" in names or str(made.__module__).startswith("torch.optim.")


def parameters_of(optimizer: Any) -> Sequence[torch.Tensor]:
    """The tensors that an optimizer holds."""
    return [
        tensor
        for group in getattr(optimizer, "param_groups", ())
        for tensor in group["params"]
        if isinstance(tensor, torch.Tensor)
    ]
