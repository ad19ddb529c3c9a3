"""Whether a change of a program is a fault: what plain torch shows of it, without gradscope.

The program runs twice with the same seed, as it should be and with the change, and both runs are
traced at the steps of their optimizers.  The change is a fault where they differ as its kind
should make them differ; bounds are those of the functions at the end.  What is compared is the
gradient of a parameter at the same step of the same optimizer, of the first ``STEPS`` steps, and of
parameters that count: those whose gradient in the right program is at least ``COUNTS`` times the
largest one of that step.  A bias before a BatchNorm has a gradient of rounding errors only.
"""

from __future__ import annotations

import atexit
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

STEPS = 3
"""How many steps of each optimizer are compared."""

COUNTS = 1e-4
"""The smallest gradient that counts, of the largest one of its step."""

FILE = "trace.pt"


@dataclass
class Step:
    """One step of an optimizer: for each of its parameters the gradient, flat and in float64, and
    whether the step changed it."""

    gradients: list[torch.Tensor | None]
    moved: list[bool]

    @property
    def norm(self) -> float:
        """The norm of all gradients together."""
        return math.hypot(*map(_norm, self.gradients))


@dataclass
class Trace:
    """A run.

    ``steps`` are the first ones of each optimizer, in the order in which optimizers take their
    first step, ``count`` is the number of all.  ``status`` and ``said`` are the exit status and
    what is on stderr.
    """

    steps: list[list[Step]] = field(default_factory=list)
    count: int = 0
    is_finite: bool = True
    status: int = 0
    said: str = ""

    @property
    def is_well(self) -> bool:
        """Whether it can be compared with."""
        return self.status == 0 and self.count > 0 and self.is_finite


# ---------------------------------------------------------------------- in the traced process


def trace() -> None:
    """Trace this process; the result is in ``FILE`` when it ends."""
    found, numbers, before = Trace(), dict[int, int](), dict[int, list[torch.Tensor]]()

    def enter(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        before[id(optimizer)] = [one.detach().clone() for one in _held(optimizer)]

    def leave(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        held, old = _held(optimizer), before.pop(id(optimizer))
        number = numbers.setdefault(id(optimizer), len(numbers))
        if number == len(found.steps):
            found.steps.append([])
        found.count += 1
        gradients = [_flat(one.grad) for one in held]
        found.is_finite &= all(_is_finite(one) for one in [*gradients, *map(_flat, held)])
        if len(found.steps[number]) < STEPS:
            moved = [not torch.equal(one, then) for one, then in zip(held, old, strict=True)]
            found.steps[number].append(Step(gradients, moved))

    register_optimizer_step_pre_hook(enter)
    register_optimizer_step_post_hook(leave)
    saved = Path(FILE).absolute()
    atexit.register(lambda: torch.save(found, saved))


def _held(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def _flat(tensor: torch.Tensor | None) -> torch.Tensor | None:
    if tensor is None:
        return None
    dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    return dense.flatten().to(torch.float64, copy=True)


def _is_finite(tensor: torch.Tensor | None) -> bool:
    return tensor is None or bool(tensor.isfinite().all())


# ---------------------------------------------------------------------- the effects

Effect = Callable[[Trace, Trace], bool]
"""Whether a trace differs from that of the right program, the first one, as it should."""


def _silent(effect: Effect) -> Effect:
    """Only where the program ends as it did: what python tells by itself needs no doctor."""
    return lambda right, sick: sick.status == 0 and effect(right, sick)


def _norm(gradient: torch.Tensor | None) -> float:
    return 0.0 if gradient is None else float(gradient.norm())


def _pairs(right: Trace, sick: Trace) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The gradients that count, and what became of them, where that is finite; zeros for none."""
    for mine, others in zip(right.steps, sick.steps, strict=False):
        for step, other in zip(mine, others, strict=False):
            largest = max(map(_norm, step.gradients), default=0.0)
            for one, another in zip(step.gradients, other.gradients, strict=False):
                if one is not None and _norm(one) > COUNTS * largest:
                    became = torch.zeros_like(one) if another is None else another
                    if became.shape == one.shape and _is_finite(became):
                        yield one, became


def changed(bound: float) -> Effect:
    """The gradient of a parameter differs by more than this part of its norm."""
    return _silent(
        lambda right, sick: any(
            not _norm(became - one) <= bound * _norm(one) for one, became in _pairs(right, sick)
        )
    )


def partly(bound: float) -> Effect:
    """As ``changed``, and no parameter loses its whole gradient."""
    return _silent(lambda right, sick: changed(bound)(right, sick) and not lost(right, sick))


@_silent
def lost(right: Trace, sick: Trace) -> bool:
    """A parameter gets no gradient any more, or zeros."""
    return any(not became.any() for _, became in _pairs(right, sick))


@_silent
def shrunk(right: Trace, sick: Trace) -> bool:
    """The gradient of a parameter is less than a thousandth of what it was."""
    return any(_norm(became) < 1e-3 * _norm(one) for one, became in _pairs(right, sick))


@_silent
def grown(right: Trace, sick: Trace) -> bool:
    """The gradient of a parameter is more than a thousand times what it was."""
    return any(_norm(became) > 1e3 * _norm(one) for one, became in _pairs(right, sick))


@_silent
def nonfinite(right: Trace, sick: Trace) -> bool:
    """A parameter or its gradient becomes NaN or infinite at any step; or there are fewer steps,
    as where a GradScaler leaves them out because of that."""
    return not sick.is_finite or sick.count < right.count


@_silent
def unmoved(right: Trace, sick: Trace) -> bool:
    """Fewer parameters are changed by the first steps."""
    return _moved(sick) < _moved(right)


def _moved(trace: Trace) -> int:
    return sum(sum(step.moved) for steps in trace.steps for step in steps)


def unclipped(bound: float) -> Effect:
    """Whatever becomes of it: the norm of all gradients is more than this, so that clipping in the
    right place would have changed the step."""
    return _silent(
        lambda right, _: any(step.norm > bound for steps in right.steps for step in steps)
    )


def raises(words: str) -> Effect:
    """The program fails, with these words on stderr."""
    return lambda _, sick: sick.status == 1 and words in sick.said
