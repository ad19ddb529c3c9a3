"""What there is to say who raised: the torch call that did so last, where it stands and what came
to it; and the hooks of the program, by their code.

A traceback tells the code of a hook that has raised, not the function object; so the code leads
back to the line that registered it. Holds code, never what a hook has in its closure.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

import torch

from gradscope.autograd.nodes import torch_name
from gradscope.autograd.summary import metadata, shown_shape
from gradscope.autograd.tensors import TensorRef, grad_fn_of, requires_grad
from gradscope.model.plain import TensorInfo
from gradscope.recording.modules import ModuleTracker
from gradscope.recording.torch_call import TorchCall, name_of_call
from gradscope.words import joined

_LONGEST_CHAIN = 20
_SIZES = (("in_features", "out_features"), ("in_channels", "out_channels"))
"""Attributes of torch's layers that say what they take and give."""


class Operand(NamedTuple):
    """A tensor that went into a call, and what is to be known of it when it is gone: a temporary
    result is, once the program has failed.  ``op`` and ``number`` are the name and the sequence
    number of the node that made it, "" and None for a leaf."""

    reference: TensorRef
    op: str
    number: int | None
    info: TensorInfo

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Operand:
        """What is known of a tensor."""
        node = grad_fn_of(tensor)
        op, number = ("", None) if node is None else (torch_name(node), node._sequence_nr())
        return cls(TensorRef(tensor), op, number, metadata(tensor))


@dataclass(frozen=True)
class FailedCall:
    """A call of torch that raised; holds neither its error nor its tensors.

    Attributes:
        function: torch's name of it.
        place: the number of its place in the program.
        got: the module that made it, and the shapes that came to it, in words.
        operands: the tensors among its arguments that have a history or are leaves.
        error: identity and class of what it raised.
    """

    function: str
    place: int
    got: str
    operands: tuple[Operand, ...]
    error: tuple[int, type[BaseException]]

    @classmethod
    def of(cls, error: BaseException, call: TorchCall, modules: ModuleTracker) -> FailedCall:
        """The call that has just raised."""
        return cls(
            name_of_call(call.func),
            call.place,
            _in_words(call, modules),
            tuple(Operand.of(one) for one in call.operands if requires_grad(one)),
            (id(error), type(error)),
        )

    def is_behind(self, error: BaseException | None) -> bool:
        """Whether this is what an exception, or one that it was raised from, came from."""
        for _ in range(_LONGEST_CHAIN):
            if error is None:
                break
            if (id(error), type(error)) == self.error:
                return True
            error = error.__cause__ or error.__context__
        return False


def _in_words(call: TorchCall, modules: ModuleTracker) -> str:
    """``fc Linear(100→10) got [2,676], weight [10,100]``; "" where no tensor came."""
    if not call.operands:
        return ""
    running = modules.running
    path = running[1].path if running else ""
    given: list[str] = []
    named: list[str] = []
    for tensor in call.operands:
        name = modules.parameter_name(tensor).removeprefix(f"{path}.")
        shape = shown_shape(tensor)
        (named if name else given).append(f"{name} {shape}" if name else shape)
    words = [joined(given)] if given else []
    got = f"got {', '.join([*words, *named])}"
    return f"{path} {_kind(*running)} {got}".strip() if running else got


def _kind(module: Any, place: Any) -> str:
    if place.is_library:  # an attribute of the program's own module may run code of it
        for taken, made in _SIZES:
            if hasattr(module, taken) and hasattr(module, made):
                return f"{place.type}({getattr(module, taken)}→{getattr(module, made)})"
    return str(place.type)


MAX_CODES = 5_000
"""Pieces of code that are remembered."""


class KnownHook(NamedTuple):
    """How a hook was registered: by which function, at which place."""

    function: str
    place: int


class HookCodes:
    """The hooks that were registered so far."""

    def __init__(self) -> None:
        self._known: dict[CodeType, KnownHook] = {}

    def note(self, arguments: Iterable[Any], function: str, place: int) -> None:
        """The program registers a hook, which is one of these arguments."""
        if len(self._known) < MAX_CODES:
            for code in (code for one in arguments for code in codes_of(one)):
                self._known[code] = KnownHook(function, place)

    def of(self, code: CodeType) -> KnownHook | None:
        """How the hook that runs this code was registered last; None where that was not seen."""
        return self._known.get(code)


def codes_of(hook: Any) -> Iterator[CodeType]:
    """The code of something that can be called, and of what it hands its call on to."""
    while isinstance(hook, functools.partial):
        hook = hook.func
    hook = getattr(hook, "__func__", hook)
    code = getattr(hook, "__code__", None)
    if not isinstance(code, CodeType):
        # An object of a class of the program; what is no hook at all has no such method of python.
        called = getattr(type(hook).__call__, "__code__", None) if callable(hook) else None
        if isinstance(called, CodeType):
            yield called
        return
    yield code
    # A decorated hook, and torch's own for several tensors, have the program's in their closure.
    for cell in getattr(hook, "__closure__", None) or ():
        inner = getattr(_content(cell), "__func__", _content(cell))
        if isinstance(getattr(inner, "__code__", None), CodeType):
            yield inner.__code__


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None
