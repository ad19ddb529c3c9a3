"""Keywords that several methods share: spelled out in their signatures, checked when given."""

from __future__ import annotations

import functools
import inspect
import re
import reprlib
import shutil
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from gradscope.options import OPTIONS
from gradscope.render.options import Options, ToCompare
from gradscope.simplify import Folding
from gradscope.words import in_python

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULTS = {one.name: one.default for one in (*fields(Folding), *fields(Options))}
_DEFAULTS["width"] = None  # as wide as the terminal

_ROWS = {one.name: one for one in OPTIONS}
_ROWS["call"] = _ROWS["held"]  # of a report, as ``show`` has it

_ONLY_HERE = {
    "lines": "how many lines of it folding aims at.",
    "color": "colour the text.",
    "unicode": "draw with box characters rather than ASCII.",
}
"""The words of keywords that no command has, or in another way."""


def spelled_out(known: type) -> Callable[[F], F]:
    """Show the keywords of a TypedDict in the signature of a method, where ``help`` and editors
    look for them; in its docstring the words of each, for ``options:`` at the end of a line, and
    what is raised for them."""

    def decorate(method: F) -> F:
        signature = inspect.signature(method)
        kept = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        kind = inspect.Parameter.KEYWORD_ONLY
        named = [
            inspect.Parameter(name, kind, default=_DEFAULTS[name], annotation=_told(annotation))
            for name, annotation in known.__annotations__.items()
        ]
        method.__signature__ = signature.replace(parameters=[*kept, *named])  # type: ignore[attr-defined]
        told = "".join(f"{_INDENT}{name}: {_words(name)}\n" for name in known.__annotations__)
        # Python 3.13 does so itself.
        doc = f"{inspect.cleandoc(method.__doc__ or '')}\n"
        doc = doc.replace(f"{_INDENT}options:\n", told)
        doc = doc if "Raises:\n" in doc else f"{doc}\nRaises:\n"
        method.__doc__ = doc.replace("Raises:\n", f"Raises:\n{_RAISES}")
        return method

    return decorate


_INDENT = " " * 4
_RAISES = (
    f"{_INDENT}TypeError: for any other keyword, or a value of another type.\n"
    f"{_INDENT}ValueError: for a number that is too small or too large.\n"
)


def _words(name: str) -> str:
    """What a keyword does, in lines of a docstring."""
    if name in _ONLY_HERE:
        return _ONLY_HERE[name]
    one = _ROWS[name]
    words = re.sub(r"--(?=\w)", "", one.words)
    default = f"; by default {one.without}." if one.without else ""
    told = f"{words[0].lower()}{words[1:]}"
    told = f"{told.rstrip('.:')}{default or '.'}"
    return f"\n{_INDENT}    ".join(textwrap.wrap(told, 80, break_on_hyphens=False))


def _told(annotation: Any) -> Any:
    return getattr(annotation, "__forward_arg__", annotation)


def drawing(method: str, known: type, given: Mapping[str, object]) -> Options:
    """What the keywords of a method come to; None is as good as left out.

    Raises:
        TypeError: naming the first that it does not know, and those that it does; or the first
            whose value is of another type.
        ValueError: naming the first number that is too small.
    """
    names = known.__annotations__
    if method == "show" and given.get("width") is None:
        given = {**given, "width": max(20, shutil.get_terminal_size((100, 40)).columns)}
    for name in given:
        if name not in names:
            raise TypeError(f"{method}() has no option {name}; it has {', '.join(names)}")
    chosen: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    kinds = get_type_hints(known)
    for name, value in chosen.items():
        # The largest of a comparison are listed; those of a report from either end.
        least = {"lines": 1, "top": 1 if known is ToCompare else None}.get(name)
        fits(method, name, value, kinds[name], least)
    own = {one.name for one in fields(Folding)} & chosen.keys()
    folding = Folding(**{name: chosen.pop(name) for name in own})
    return Options(folding=folding, **chosen)


def public(function: F) -> F:
    """Let a function speak of keywords, not of options, and refuse a plain argument that does not
    fit."""
    kinds = {
        name: _PLAIN.get(one.annotation)
        for name, one in inspect.signature(function).parameters.items()
    }

    function.__qualname__ = function.__name__  # as it is called, in python's own messages

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        with in_python():
            for name, value in (*zip(kinds, args, strict=False), *kwargs.items()):
                if kinds.get(name) is not None:
                    fits(function.__name__, name, value, kinds[name])
            return function(*args, **kwargs)

    return cast(F, checked)


def fits(method: str, name: str, value: Any, kind: Any, least: int | None = None) -> None:
    """Look whether a value is what a method takes.

    Args:
        method: its name.
        name: of the argument, which may be in the table of options, and then has its limits.
        value: what is given.
        kind: an annotation.
        least: the least that it may be, where the table does not say it.

    Raises:
        TypeError: it is of another type.
        ValueError: it is too small, or too large.
    """
    plain = value
    # Numbers of NumPy are as good.
    if isinstance(value, Real) and not isinstance(value, bool):
        plain = int(value) if isinstance(value, Integral) else float(value)
    parts = [one for one in _parts(kind) if one is not type(None)]
    known = [_KINDS.get(one) or f"one of {', '.join(get_args(one))}" for one in parts]
    told = " or ".join(known)
    try:
        msgspec.convert(plain, kind)
    except msgspec.ValidationError:
        raise TypeError(f"{method}() takes {told} as {name}, not {reprlib.repr(value)}") from None
    row = _ROWS.get(name)
    least = row.least if least is None and row else least
    most = row.most if row else None
    if value is None or isinstance(value, str | bool) or least is None:
        return
    if not value >= least or (most is not None and value > most):
        limits = f"from {least} up" if most is None else f"from {least} to {most}"
        raise ValueError(f"{method}() takes {told} {limits} as {name}, not {value}")


_PLAIN = {
    **{one.__name__: one for one in (bool, int, float, str)},
    **{f"{one.__name__} | None": one | None for one in (int, float, str)},
}
"""The annotations whose arguments are checked."""

_KINDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text"}


def _parts(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
