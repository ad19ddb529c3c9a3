"""Which function of torch a call is really for, where the program has put another in its place; and
the optimizers of a program, with what they hold.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch.optim import Optimizer

from gradscope.handlers import let_pass

HANDLER: CodeType = torch.overrides.handle_torch_function.__code__
"""What hands a torch function that is written in python to the mode."""

_TORCH = str(Path(torch.__file__).parent) + "/"


class Originals:
    """Looks functions up, each once.

    ``torchs`` are the ids of those that were met and are torch's own.
    """

    def __init__(self) -> None:
        self.torchs: set[int] = set()
        self._known: dict[int, tuple[Any, bool]] = {}
        self._by_code: dict[CodeType, Any] = {one.__code__: one for one in BACKWARD_FUNCTIONS}

    def know(self, func: Any) -> None:
        """A function of torch in whose place another is about to be put.

        Where the program has called ``gc.freeze()`` it could not be found later, and one made of
        its code alone has no defaults.
        """
        if isinstance(func, FunctionType):
            self._by_code[func.__code__] = func

    def called(self, func: Any, frame: FrameType) -> Any:
        """The function that is under way.

        Args:
            func: what the mode was handed.
            frame: the frame that called the mode.
        """
        if frame.f_code is not HANDLER or frame.f_back is None:
            return func  # written in C: it says what it is
        # By identity: what the program has put there need not be hashable.
        known = self._known.get(id(func))
        if known is None:
            known = self._known[id(func)] = (func, _is_torchs(func))
            if known[1]:
                self.torchs.add(id(func))
        return func if known[1] else self._original(frame.f_back)

    def _original(self, frame: FrameType) -> Any:
        code = frame.f_code
        if code not in self._by_code:
            # Torch hands over all arguments, so that a function of the same code does as well.
            self._by_code[code] = function_of(code) or FunctionType(code, frame.f_globals)
        return self._by_code[code]


def function_of(code: CodeType) -> Any:
    """A living function with this code; None where there is none to be found: ``gc.freeze()`` hides
    those that were there before."""
    functions = (one for one in gc.get_referrers(code) if isinstance(one, FunctionType))
    return next((one for one in functions if one.__code__ is code), None)


def _is_torchs(func: Any) -> bool:
    code = getattr(func, "__code__", None)
    if isinstance(code, CodeType):
        return code.co_filename.startswith(_TORCH)
    # Operators of higher order are objects.
    return type(func).__module__.partition(".")[0] in ("torch", "builtins")


def _backward_method() -> Any:
    """``Tensor.backward`` as torch wrote it, whatever the program has put there."""
    if _is_torchs(torch.Tensor.backward):
        return torch.Tensor.backward
    # The program may have patched the method before this module was imported; torch's own then
    # lives on as long as the patch calls it.
    written = (one for one in gc.get_objects() if isinstance(one, FunctionType))
    own = (one for one in written if one.__qualname__ == "Tensor.backward" and _is_torchs(one))
    return next(own, torch.Tensor.backward)


BACKWARD_FUNCTIONS = {_backward_method(), torch.autograd.grad}
"""What starts a backward pass, and passes through a ``TorchFunctionMode``."""


def kinds_of(kind: Any) -> list[Any]:
    """A class and all that are made of it."""
    kinds = [kind]
    for one in kinds:
        # The list grows while it is read, so that classes of classes are met as well.
        kinds.extend(type.__subclasses__(one))
    return kinds


def living_optimizers() -> list[Any]:
    """All optimizers that live, also those that have never made a step."""
    # The collector's own search takes a part of the time that one in python takes.
    found = gc.get_referrers(*kinds_of(Optimizer))
    # `isinstance` would ask each of them for `__class__`, which may be computed.
    return [thing for thing in found if issubclass(type(thing), Optimizer)]


def parameters_of(optimizer: Any) -> Sequence[torch.Tensor]:
    """The tensors that an optimizer holds; none of one that was never finished."""
    try:
        return [
            tensor
            for group in getattr(optimizer, "param_groups", ())
            for tensor in group["params"]
            if isinstance(tensor, torch.Tensor)
        ]
    except Exception as error:  # of a class of the program
        let_pass(error)
        return []
