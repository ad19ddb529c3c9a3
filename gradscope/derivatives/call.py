"""One call of the program as it stands on the tape, and whether it can be made again: what it takes
and gives, by slots, which stand for one value each, and values from outside; and the forms that
torch assumes a matrix to have.

Of such a matrix (``eigh``, ``cholesky_solve``) torch reads one triangle only, and its backward
counts on what the other one should hold: the gradient is right for steps that keep the form. Knows
nothing of how calls come on the tape, or of how derivatives are compared.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from gradscope.autograd.elements import has_memory, readable
from gradscope.autograd.isolation import others_compute
from gradscope.autograd.nodes import AROUND_HOOKED
from gradscope.autograd.tensors import TensorRef, grad_fn_of, is_learned_leaf, requires_grad
from gradscope.derivatives.rerun import codes_of, moves_iterator, unnoticed

COPIED = 4_096
"""Elements up to which a value from outside is copied at once; a larger one is only referred to,
and is lost if the program changes it in place."""


@dataclass(eq=False)
class OutsideValue:
    """A value that came from outside the tape: a leaf, a constant, or a result of something that
    was not taped.

    ``leaf``: the leaf it is.  ``node``: the sequence number of the node that made it, where it has
    a history.
    """

    value: torch.Tensor
    version: int
    requires_grad: bool
    leaf: TensorRef | None = None
    node: int | None = None

    @classmethod
    def of(cls, tensor: torch.Tensor) -> OutsideValue:
        """The value of a tensor as it is now."""
        found, made = cls.without_history(tensor), grad_fn_of(tensor)
        found.leaf = TensorRef(tensor) if is_learned_leaf(tensor) else None
        found.node = None if made is None else made._sequence_nr()
        return found

    @classmethod
    def without_history(cls, tensor: torch.Tensor) -> OutsideValue:
        """The same, and nothing of the tensor itself: the program may swap it."""
        value = tensor.detach()
        if value.numel() <= COPIED:
            value = value.clone()
        return cls(value, version_of(value), requires_grad(tensor))

    def keep(self) -> None:
        """The program is about to change the tensor: hold a copy of it as it is."""
        if not self.is_lost:
            self.value = self.value.clone()
            self.version = version_of(self.value)

    @property
    def is_lost(self) -> bool:
        """Whether the program has changed the tensor since, or given its memory back."""
        return version_of(self.value) != self.version or not has_memory(self.value)


@dataclass(eq=False)
class TapeSlot:
    """One value on the tape.

    ``given`` where it came from outside.  ``origin`` is the slot whose memory a view shares when
    the tape is run again.  ``result`` is the value that the program had, kept of custom Functions
    only.  ``carries``: it has a history now.
    """

    given: OutsideValue | None = None
    origin: TapeSlot | None = None
    result: OutsideValue | None = None
    carries: bool = True

    @property
    def base(self) -> TapeSlot:
        """The slot whose memory it is."""
        return self.origin or self


def is_usable(tensor: torch.Tensor) -> bool:
    """Whether a tensor can be copied and computed with in float64."""
    return readable(tensor) and type(tensor) in (torch.Tensor, torch.nn.Parameter)


def version_of(tensor: torch.Tensor) -> int:
    """How often a tensor was changed in place; -1 where torch does not count."""
    return -1 if tensor.is_inference() else tensor._version


RandomStates = dict[torch.device, torch.Tensor]


def random_states(tensors: Iterable[torch.Tensor]) -> RandomStates:
    """The random states that a call of these may draw from."""
    devices = {one.device for one in tensors if one.device.type == "cuda"}
    return {device: _random_state(device) for device in (torch.device("cpu"), *devices)}


def left_behind(states: RandomStates) -> RandomStates:
    """Those of them that have moved on since."""
    return {
        device: state
        for device, state in states.items()
        if not torch.equal(state, _random_state(device))
    }


def _random_state(device: torch.device) -> torch.Tensor:
    return torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state(device)


HIDDEN = "is torch's own and hides what it runs"
"""Why some of torch's Functions cannot be made again."""


@dataclass(eq=False)
class Call:
    """One call that made history, as it was made.

    ``leaves`` are its arguments flattened, each tensor replaced by its slot; ``results`` are the
    slots of the flattened result, None for what carries no history; ``changed`` the slot of an
    operand that it changed in place.  ``inputs`` are the operands that carried history.  Its nodes
    have the sequence numbers ``first <= n < end``.  ``random`` are the random states before it, of
    those that it drew numbers from.  ``problem`` says why it cannot be made again.
    """

    function: Any
    leaves: list[Any]
    spec: pytree.TreeSpec
    inputs: list[TapeSlot]
    place: int = -1
    first: int = 0
    end: int = 0
    results: list[TapeSlot | None] = field(default_factory=list)
    changed: TapeSlot | None = None
    random: RandomStates = field(default_factory=dict)
    problem: str = ""
    inside: torch.dtype = torch.float64
    """The coarsest precision of what a custom Function made when it was made again in float64."""

    @property
    def custom(self) -> Any:
        """The custom Function that it applies; None for a built-in call."""
        return custom_of(self.function)

    @property
    def name(self) -> str:
        """What was called, in a word."""
        if self.custom is not None:
            return str(self.custom.__name__)
        name = str(getattr(self.function, "__name__", self.function))
        owner = getattr(self.function, "__self__", None)
        return str(getattr(owner, "__name__", name)) if name in ("__get__", "__set__") else name

    @property
    def is_torchs(self) -> bool:
        """Whether torch itself holds the derivative: no custom Function, nor an operation that a
        library has registered with a backward of its own."""
        module = getattr(self.function, "__module__", None) or "torch"
        library = module.removeprefix("torch._ops.")
        is_of_torch = module.partition(".")[0] == "torch" and library in (module, "aten", "prims")
        return is_of_torch and self.custom is None

    def option(self, name: str) -> Any:
        """What was given for a parameter; its default, and None where there is no such one."""
        args, kwargs = pytree.tree_unflatten(self.leaves, self.spec)
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
        except (TypeError, ValueError):  # C functions tell no signature
            return kwargs.get(name)
        bound.apply_defaults()
        return bound.arguments.get(name)

    @property
    def draws(self) -> bool:
        """Whether it drew random numbers."""
        return bool(self.random)

    @property
    def is_backward(self) -> bool:
        """Whether it is a backward pass that left a graph."""
        return self.function is torch.autograd.grad

    def nodes(self, positions: Mapping[int, int]) -> tuple[int, ...]:
        """Those that it made of a graph whose nodes are known by their sequence numbers."""
        made = range(self.first, self.end)
        return tuple(sorted(positions[one] for one in made if one in positions))

    @property
    def slots(self) -> Iterator[TapeSlot]:
        """The operands, in the order of the arguments."""
        return (one for one in self.leaves if isinstance(one, TapeSlot))

    @property
    def others(self) -> Iterator[Any]:
        """The arguments that are no tensors."""
        return (one for one in self.leaves if not isinstance(one, TapeSlot))


@contextmanager
def made_again(calls: Iterable[Call]) -> Iterator[None]:
    """These calls of custom Functions may be made again in the block, and the program finds nothing
    changed by it; none of them beside other threads of the program, which is then their problem."""
    fit = [call for call in calls if not call.problem]
    if fit and others_compute():
        for call in fit:
            call.problem = "another thread of the program runs, and may use what its code changes"
        fit = []
    with unnoticed({call.custom for call in fit}, (one for call in fit for one in call.others)):
        yield


def custom_of(function: Any) -> Any:
    """The custom Function whose ``apply`` this is; None of any other."""
    owner = getattr(function, "__self__", None)
    is_function = isinstance(owner, type) and issubclass(owner, torch.autograd.Function)
    return owner if is_function else None


def is_tensor(thing: Any) -> bool:
    """Whether an argument or a result is a tensor."""
    return isinstance(thing, torch.Tensor)


def problem_of(func: Any, leaves: list[Any]) -> str:
    """Why a call could not be made again; "" when it can."""
    custom = custom_of(func)
    if custom is not None and custom is not AROUND_HOOKED:
        if not codes_of(custom):
            return f"{custom.__name__} {HIDDEN}"
        if moves_iterator(custom):
            return "its code moves an iterator outside of it"
    if any(is_tensor(one) and not is_usable(one) for one in leaves):
        return "it takes a tensor that is sparse, nested or of a class of its own"
    if any(isinstance(one, torch.Generator) for one in leaves):
        return "it draws from a generator of its own"
    if any(isinstance(one, torch.nn.Module) for one in leaves):
        return "it takes a module, which would be run again too"
    if any(map(_is_of_program, leaves)):
        return "it takes a function, which would be run again too"
    return ""


def _is_of_program(thing: Any) -> bool:
    """Whether it is a python function, a method or a partial of one, other than torch's own."""
    inner = getattr(thing, "func", thing) if isinstance(thing, functools.partial) else thing
    is_python = isinstance(inner, (types.FunctionType, types.MethodType))
    return is_python and not str(inner.__module__).startswith("torch.")


Part = Callable[[torch.Tensor], torch.Tensor]
"""Takes matrices, and gives them with only a part left or made to have a form."""


class Form(NamedTuple):
    """A form of matrices: its name for real ones and for complex ones, and the projection on it."""

    of_real: str
    of_complex: str
    project: Part

    def name(self, tensor: torch.Tensor) -> str:
        """What it is called for a tensor."""
        return self.of_complex if tensor.is_complex() else self.of_real

    def has(self, tensor: torch.Tensor) -> bool:
        """Whether matrices have the form, but for rounding."""
        return torch.allclose(self.project(tensor), tensor)


FORMS = (
    Form("symmetric", "Hermitian", lambda matrix: (matrix + matrix.mH) / 2),
    Form("lower triangular", "lower triangular", torch.tril),
    Form("upper triangular", "upper triangular", torch.triu),
)

TRIANGLES: tuple[Part, ...] = (
    lambda matrix: torch.triu(matrix, 1),
    lambda matrix: torch.tril(matrix, -1),
)
"""What lies above the diagonal, and what lies below it; torch reads the one or the other."""


def is_square(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds matrices that could have one of the forms."""
    return tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] > 1


def part_of(direction: torch.Tensor, part: Part, like: torch.Tensor) -> torch.Tensor:
    """A part of a direction, in which complex numbers are a last dimension of two, for a tensor
    such as this one."""
    if not like.is_complex():
        return part(direction)
    return torch.view_as_real(part(torch.view_as_complex(direction)).resolve_conj())
