"""Keywords that several methods share: spelled out in their signatures, checked when given."""

from __future__ import annotations

import functools
import inspect
import re
import reprlib
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from gradscope.options import OPTIONS, OptionRow
from gradscope.render.options import Options, ToCompare
from gradscope.simplify import Folding

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULTS = {one.name: one.default for one in (*fields(Folding), *fields(Options))}
_DEFAULTS["width"] = None  # as wide as the terminal

_ROWS = {one.name: one.row for one in OPTIONS}
_ROWS["call"] = _ROWS["held"]  # of a report, as ``show`` has it

_ONLY_HERE = {
    "lines": "how many lines of it folding aims at.",
    "color": "colour the text.",
    "unicode": "draw with box characters rather than ASCII.",
    "direction": 'which way the arrows of a picture point, ``"backward"`` or ``"forward"``.',
}
"""The words of keywords that no command has, or in another way."""


def spelled_out(known: type) -> Callable[[F], F]:
    """Show the keywords of a TypedDict in the signature of a method, where ``help`` and editors
    look for them; and below ``options:`` in its docstring, if that stands at the end of a line."""

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
        method.__doc__ = (method.__doc__ or "").replace(f"{_INDENT}options:\n", told)
        return method

    return decorate


_INDENT = " " * 12


def _words(name: str) -> str:
    """What a keyword does, in lines of a docstring."""
    if name in _ONLY_HERE:
        return _ONLY_HERE[name]
    row = _ROWS[name]
    words = re.sub(r"--(?=\w)", "", row.words)
    default = f"; by default {row.without}." if row.without else ""
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
    for name in given:
        if name not in names:
            raise TypeError(f"{method}() has no option {name}; it has {', '.join(names)}")
    chosen: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    kinds = get_type_hints(known)
    for name, value in chosen.items():
        of_kind(method, name, value, kinds[name])
        # The largest of a comparison are listed; those of a report from either end.
        not_below(method, name, value, 1 if name == "top" and known is ToCompare else None)
    own = {one.name for one in fields(Folding)} & chosen.keys()
    folding = Folding(**{name: chosen.pop(name) for name in own})
    return Options(folding=folding, **chosen)


def not_below(method: str, name: str, value: Any, least: int | None = None) -> None:
    """Look whether a number is large enough for a method, and not too large.

    Raises:
        ValueError: it is not.
    """
    row = _ROWS.get(name, OptionRow("", "", least=1 if name == "lines" else None))
    least, most = row.least if least is None else least, row.most
    if (least is not None and value < least) or (most is not None and value > most):
        limits = f"from {least} up" if most is None else f"from {least} to {most}"
        raise ValueError(f"{method}() takes a whole number {limits} as {name}, not {value}")


def flags_checked(function: F) -> F:
    """Let a function refuse, by a TypeError, what is neither True nor False as one of its flags."""
    parameters = inspect.signature(function).parameters.values()
    flags = {one.name for one in parameters if one.annotation == "bool"}

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in [one for one in kwargs if one in flags]:
            of_kind(function.__name__, name, kwargs[name], bool)
        return function(*args, **kwargs)

    return cast(F, checked)


def of_kind(method: str, name: str, value: object, kind: Any) -> None:
    """Look whether an argument is what a method takes; ``kind`` is its annotation.

    Raises:
        TypeError: it is not.
    """
    plain = value
    # Numbers of NumPy are as good.
    if isinstance(value, Real) and not isinstance(value, bool):
        plain = int(value) if isinstance(value, Integral) else float(value)
    try:
        msgspec.convert(plain, kind)
    except msgspec.ValidationError:
        known = [_KINDS.get(one) or f"one of {', '.join(get_args(one))}" for one in _parts(kind)]
        raise TypeError(
            f"{method}() takes {' or '.join(known)} as {name}, not {reprlib.repr(value)}"
        ) from None


_KINDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text"}


def _parts(kind: Any) -> list[Any]:
    """The kinds in a union, but for None."""
    if get_origin(kind) not in (Union, UnionType):
        return [kind]
    return [one for one in get_args(kind) if one is not type(None)]
