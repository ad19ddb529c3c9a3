"""torch's own operator database as cases: an operator, a dtype, and one of its sample inputs.

The database is what torch tests itself with; it is private, and comes with the wheel.  A case is
made anew whenever it is asked for, and is the same to the last bit.  Knows nothing of gradscope.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

SEED = 12

MOST_SAMPLES = 4
"""Sample inputs of an operator that are tried for each dtype, spread evenly over all it has."""

MOST_ELEMENTS = 4_000
"""Samples with more elements are passed over, where an operator has smaller ones."""

DTYPES = ("float32", "complex64")

Tensors = list[torch.Tensor]


@cache
def operators() -> dict[str, Any]:
    """Every operator that has a backward, by its full name."""
    return {op.full_name: op for op in op_db if op.supports_autograd}


@dataclass(frozen=True)
class Case:
    """An operator by its full name, the name of a dtype, the number of a sample input, and whether
    it writes into its operand."""

    name: str
    dtype: str
    number: int
    in_place: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """What ``program.py`` is told."""
        return (self.name, self.dtype, str(self.number), *["in-place"] * self.in_place)

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Case:
        """The case of a program's arguments."""
        name, dtype, number, *more = arguments
        return cls(name, dtype, int(number), bool(more))

    def make(self) -> Made:
        """The call, ready to be made, and with leaves of its own."""
        op = operators()[self.name]
        with closing(_samples(self.name, self.dtype)) as samples:
            sample = next(islice(samples, self.number, None))
        # Some operators are right for matrices of some form only; this is how torch tests them.
        function = partial(op.gradcheck_wrapper, _in_place(op) if self.in_place else op.op)
        made = Made(
            function, sample.input, sample.args, sample.kwargs, sample.output_process_fn_grad
        )
        LATEST[:] = made.leaves
        return made


def _in_place(op: Any) -> Callable[..., Any]:
    # A leaf must not be written into.
    return lambda input, *args, **kwargs: op.inplace_variant(input.clone(), *args, **kwargs)


LATEST: Tensors = []
"""The leaves of the case that was made last, to be looked at when a program has ended."""


@dataclass
class Made:
    """One call of an operator: the function, its operands, and which of its results count."""

    function: Callable[..., Any]
    input: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    chosen: Callable[[Any], Any]

    def call(self) -> Any:
        """Make the call, always with the same random numbers."""
        _seed()
        return self.function(self.input, *self.args, **self.kwargs)

    @property
    def leaves(self) -> Tensors:
        """The operands that require grad."""
        return list(_leaves(self))

    def roots(self, out: Any) -> Tensors:
        """The results that have a history, of those whose gradient is defined."""
        found = pytree.tree_leaves(self.chosen(out))
        return [one for one in found if isinstance(one, torch.Tensor) and one.requires_grad]


def gradients(roots: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """What is fed in at each root: random numbers, nothing where it is a single real one."""
    own = torch.Generator().manual_seed(SEED)
    return [
        None
        if one.numel() == 1 and not one.is_complex()
        else torch.randn(one.shape, generator=own, dtype=one.dtype)
        for one in roots
    ]


@cache
def cases(name: str) -> tuple[Case, ...]:
    """The cases of an operator, in all dtypes that it has a backward for; the first also in
    place."""
    op = operators()[name]
    # What the database tests on CUDA only may well run here.
    kinds = op.supported_backward_dtypes("cpu") or {torch.float32}
    known = [dtype for dtype in DTYPES if getattr(torch, dtype) in kinds]
    found = [Case(name, dtype, number) for dtype in known for number in _chosen(name, dtype)]
    if op.inplace_variant is not None and op.supports_inplace_autograd:
        found += [replace(one, in_place=True) for one in found if _fits(one)][:1]
    return tuple(found)


def _fits(case: Case) -> bool:
    """Whether the result has the shape and the dtype of the operand, so that it can be written
    there."""
    made = case.make()
    out = made.call()
    is_one = isinstance(out, torch.Tensor) and isinstance(made.input, torch.Tensor)
    return is_one and (out.shape, out.dtype) == (made.input.shape, made.input.dtype)


def _chosen(name: str, dtype: str) -> Iterator[int]:
    sizes = {number: _size(sample) for number, sample in enumerate(_samples(name, dtype))}
    usable = sorted((number for number, size in sizes.items() if size), key=sizes.__getitem__)
    small = sorted(number for number in usable if sizes[number] <= MOST_ELEMENTS) or usable[:1]
    step = max(len(small) / MOST_SAMPLES, 1)
    yield from (small[int(i * step)] for i in range(min(MOST_SAMPLES, len(small))))


def _samples(name: str, dtype: str) -> Generator[Any]:
    _seed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        op, kind = operators()[name], getattr(torch, dtype)
        # Its method ``sample_inputs`` looks for a test of torch's on the stack, which takes long.
        yield from op.sample_inputs_func(op, "cpu", kind, True)


def _size(sample: Any) -> int:
    """The elements of all operands; 0 where none requires grad."""
    tensors = list(_tensors(sample))
    has_leaf = any(one.requires_grad for one in tensors)
    return sum(one.numel() for one in tensors) if has_leaf else 0


def _leaves(sample: Any) -> Iterator[torch.Tensor]:
    return (one for one in _tensors(sample) if one.requires_grad)


def _tensors(sample: Any) -> Iterator[torch.Tensor]:
    for one in pytree.tree_leaves((sample.input, sample.args, sample.kwargs)):
        if isinstance(one, torch.Tensor):
            yield one


def _seed() -> None:
    random.seed(SEED)
    torch.manual_seed(SEED)
