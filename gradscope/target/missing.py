"""Finds the function a target names, and says what was meant when a file or function is missing.

Looks at directories and module namespaces only; must not know how programs are run.
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import CodeType, ModuleType

from gradscope.errors import TargetError
from gradscope.target.description import NOTEBOOK
from gradscope.words import listed, nearest

_SHOWN_NAMES = 8

_MAKES_NAMES = {
    *("globals", "locals", "vars", "setattr", "exec", "eval", "__dict__", "__getattr__", "*"),
}
"""What a file that makes names of texts, or takes over those of another, has to mention."""


def missing_file_hint(text: str, error: OSError) -> str:
    """Say what to do about a script that cannot be opened: the nearest name, or another way."""
    path = Path(text)
    if isinstance(error, PermissionError):
        return "make the file readable"
    if isinstance(error, IsADirectoryError):
        return "give the script itself"
    # A name as typed, for the hint is to be pasted back.
    beside = [
        other.name for suffix in (".py", NOTEBOOK) for other in path.parent.glob(f"*{suffix}")
    ]
    nearest = difflib.get_close_matches(path.name, beside, n=1)
    if nearest:
        return f"did you mean {path.with_name(nearest[0])}?"
    if _is_module(text):
        return f"to run a module, write -m {text}"
    return "check the path; it is taken from the current directory"


def _is_module(name: str) -> bool:
    """Whether there is a package or module that a dotted name begins with."""
    first = name.partition(".")[0]
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    return PathFinder.find_spec(first, ["", *sys.path]) is not None


def check_defines(code: CodeType, name: str, text: str) -> None:
    """Refuse a function before its file runs, where nothing in the file can make that name.

    Args:
        code: the compiled file.
        name, text: as for :func:`function_in`.

    Raises:
        TargetError: with the functions that the file does define.
    """
    first = name.partition(".")[0]
    known: set[str] = set()
    codes = [code]
    while codes:
        one = codes.pop()
        known.update(one.co_names, one.co_varnames, one.co_cellvars, one.co_freevars)
        for value in one.co_consts:
            known.update(_texts(value))
            codes += [value] if isinstance(value, CodeType) else []
    if first in known or known & _MAKES_NAMES:
        return
    own = [one.co_name for one in code.co_consts if isinstance(one, CodeType)]
    raise _no_function(text, name, [one for one in own if one.isidentifier()])


def _texts(constant: object) -> tuple[str, ...]:
    values = constant if isinstance(constant, (tuple, frozenset)) else (constant,)
    return tuple(value for value in values if isinstance(value, str))


def function_in(module: ModuleType, name: str, text: str) -> Callable[[], object]:
    """Return the function ``name`` (dots go into classes) of ``module``, ready to be called.

    Args:
        module: the loaded file.
        name: the name after ``::``.
        text: the file as the user typed it, for messages.

    Raises:
        TargetError: it is not there, is no function, or cannot be called without arguments.
    """
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise _no_function(text, name, _own_names(module))
        found = getattr(found, part)
    if not callable(found):
        what = f"{text}::{name} is not a function but of type {type(found).__name__}"
        raise TargetError(what, _names_hint(name, _own_names(module)))
    needed = _needed_parameters(found)
    if needed:
        raise TargetError(
            f"{text}::{name} cannot be called without arguments: it needs {', '.join(needed)}",
            "give its parameters defaults, or name a function that takes none and calls it",
        )
    return found


def _no_function(text: str, name: str, own: Sequence[str]) -> TargetError:
    return TargetError(f"{text} has no function {name!r}", _names_hint(name, own))


def _own_names(module: ModuleType) -> list[str]:
    # Not what the file imported: nobody means torch.relu by train.py::relu.
    return [
        known
        for known, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]


def _names_hint(name: str, own: Sequence[str]) -> str:
    if not own:
        return "the file defines no functions"
    return f"it has: {listed(nearest(name, own), _SHOWN_NAMES)}"


def _needed_parameters(function: Callable[..., object]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # Some builtins tell nothing about their parameters; calling them will.
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        parameter.name
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty and parameter.kind not in optional
    ]
