"""Keywords that several methods share: spelled out in their signatures, checked when given."""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from gradscope.render.options import Options, ToCompare, options_of
from gradscope.simplify import Folding

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULTS = {one.name: one.default for one in (*fields(Folding), *fields(Options))}
_DEFAULTS["width"] = None  # as wide as the terminal

_LEAST = {"depth": 1, "width": 20, "lines": 1}
"""The least that these numbers may be, as on the command line."""


def spelled_out(known: type) -> Callable[[F], F]:
    """Show the keywords of a TypedDict in the signature of a method, where ``help`` and editors
    look for them."""

    def decorate(method: F) -> F:
        signature = inspect.signature(method)
        kept = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        kind = inspect.Parameter.KEYWORD_ONLY
        named = [
            inspect.Parameter(name, kind, default=_DEFAULTS[name], annotation=_told(annotation))
            for name, annotation in known.__annotations__.items()
        ]
        method.__signature__ = signature.replace(parameters=[*kept, *named])  # type: ignore[attr-defined]
        return method

    return decorate


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
    chosen = {name: value for name, value in given.items() if value is not None}
    kinds = get_type_hints(known)
    for name, value in chosen.items():
        of_kind(method, name, value, kinds[name])
        # The largest of a comparison are listed; those of a report from either end.
        not_below(method, name, value, 1 if name == "top" and known is ToCompare else None)
    return options_of(**chosen)


def not_below(method: str, name: str, value: Any, least: int | None = None) -> None:
    """Look whether a number is large enough for a method.

    Raises:
        ValueError: it is not.
    """
    least = _LEAST.get(name) if least is None else least
    if least is not None and value < least:
        raise ValueError(f"{method}() takes a whole number from {least} up as {name}, not {value}")


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
