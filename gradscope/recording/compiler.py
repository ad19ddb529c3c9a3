"""torch.compile: keeping it off the program, or off ourselves.

Knows nothing of graphs of autograd or of the Report.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from gradscope.errors import CaptureError, described
from gradscope.recording.source import with_inner
from gradscope.words import either

_FORCED = "force_eager"
_OURS = __name__.partition(".")[0]


is_compiling: Callable[[], bool] = torch.compiler.is_dynamo_compiling
"""Whether torch.compile is reading the code that asks; ``torch.compiler._is_compiling_flag`` tells
of torch.export as well.  Asked in this order, for that is two calls less than torch's own
``is_compiling``, and torch.compile reads no further."""


class Eager:
    """While it is started, nothing that the program asks torch.compile for is compiled.

    A stance that the program takes itself (``torch.compiler.set_stance``) has the last word.
    """

    started = False

    def __init__(self) -> None:
        self._taken: Any = None

    def start(self) -> None:
        """Take the stance.

        Raises:
            CaptureError: when torch's compiler cannot be imported.
        """
        try:
            self._taken = torch.compiler.set_stance(_FORCED)
            Eager.started = True
        except Exception as error:
            raise CaptureError(
                f"torch.compiler.set_stance failed with {described(error)}",
                either("leave out --eager", "let the program run compiled"),
            ) from error

    def stop(self) -> None:
        """Go back to the stance before, unless the program has taken another."""
        if self._taken is not None and stance() in (_FORCED, ""):
            self._taken.__exit__(None, None, None)
        self._taken = None
        Eager.started = False


def stance() -> str:
    """The stance that torch.compile has now; "" where torch does not tell."""
    # Private: in public torch takes a stance and never tells which it has.
    taken = getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None)
    return str(getattr(taken, "stance", ""))


def keep_out() -> None:
    """Tell torch.compile to leave the functions of this package alone.

    After a graph break python runs the program's function itself, and torch.compile then wants to
    trace every function that is called meanwhile: ours would break the graph once more.
    """
    compiler: Any = torch._C._dynamo.eval_frame
    skip = getattr(compiler, "skip_code", None)  # up to torch 2.8 or so
    if skip is None and hasattr(compiler, "set_code_exec_strategy"):
        action = compiler._FrameAction
        strategy = compiler._FrameExecStrategy(action.SKIP, action.DEFAULT)

        def skip(code: CodeType) -> None:
            compiler.set_code_exec_strategy(code, strategy)

    if skip is not None:
        for code in _new_codes():
            skip(code)


_kept_out: set[str] = set()
"""The modules whose functions are known to it."""
_newest = ""
"""The last module that was there when it was asked last."""


def _new_codes() -> Iterator[CodeType]:
    """The code of our functions in modules that were imported since the last call."""
    modules = [
        module
        for name in _new_modules()
        if name.partition(".")[0] == _OURS
        and name not in _kept_out
        and isinstance(module := sys.modules.get(name), ModuleType)
    ]
    _kept_out.update(module.__name__ for module in modules)
    return with_inner(code for one in modules for code in _codes_of(one.__name__, vars(one)))


def _new_modules() -> list[str]:
    # There are thousands of modules; the new ones are at the end.
    global _newest
    names = list(takewhile(lambda name: name != _newest, reversed(sys.modules)))
    _newest = names[0] if names else _newest
    return names


def _codes_of(module: str, values: Mapping[str, Any]) -> Iterator[CodeType]:
    # What a module has only imported is met in the module that made it.
    for value in list(values.values()):
        if isinstance(value, type) and value.__module__ == module:
            yield from _codes_of(module, vars(value))
        function = getattr(value, "__func__", getattr(value, "fget", value))
        function = getattr(function, "__wrapped__", function)
        if isinstance(function, FunctionType) and function.__module__ == module:
            yield function.__code__
