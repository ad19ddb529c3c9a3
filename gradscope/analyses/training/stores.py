"""Which line stores something under a name: an assignment, or a call that fills a container.

Read from the source of the functions on the stack, and of the methods of the objects in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, FunctionType

from gradscope.recording.names import locals_of
from gradscope.recording.source import Site, Sources

_COMPUTED = re.compile(r"^(?!None\b)(?!torch\.(zeros|ones|empty|tensor)\b).*[A-Za-z_]", re.DOTALL)


def codes_of(frames: Iterable[FrameType]) -> Iterator[CodeType]:
    """The code of the frames, and of the methods of the objects in them."""
    seen: set[CodeType] = set()
    for frame in frames:
        kinds = {type(value) for value in locals_of(frame).values()}
        members = [member for kind in kinds for member in vars(kind).values()]
        for code in [frame.f_code, *_codes(members)]:
            if code not in seen:
                seen.add(code)
                yield code


def methods(kind: type) -> Iterator[CodeType]:
    """The code of the functions that a class defines."""
    return _codes(list(vars(kind).values()))


def _codes(members: Iterable[object]) -> Iterator[CodeType]:
    """The code of those that are functions."""
    for member in members:
        # Only what is known by its type: others may compute what they are asked for.
        kind = type(member)
        function = member.__func__ if kind in (staticmethod, classmethod) else member  # type: ignore[attr-defined]
        if type(function) is FunctionType:
            yield function.__code__


def sites_of(codes: Iterable[CodeType]) -> Iterator[Site]:
    """All places in them."""
    return (Site(code, offset) for code in codes for offset in range(0, len(code.co_code), 2))


def filling(name: str, frames: list[FrameType], sources: Sources) -> Iterator[Site]:
    """Lines that put something into a container of this name, also in methods of its owner."""
    owner, _, last = name.rpartition(".")
    fills = r"\s*(\.(append|appendleft|extend|insert)\b|\+=)"
    own = {frame.f_code for frame in frames}
    for site in sites_of(codes_of(frames)):
        if site.code not in own and not owner:
            continue
        path = re.escape(name) if site.code in own else rf"\w+\.{re.escape(last)}"
        origin = sources.origin(site)
        # `history[k]` is read as well; as a target it is what an assignment gives a value.
        if re.match(path + fills, origin.expression) or re.match(rf"{path}\[", origin.variable):
            yield site


def assigning(name: str, frames: list[FrameType], sources: Sources) -> Iterator[Site]:
    """Lines that assign to this name something that has a name; to an attribute of it also in
    other methods."""
    last = name.rpartition(".")[2] if "." in name else ""
    own = {frame.f_code for frame in frames}
    for site in sites_of(codes_of(frames)):
        origin = sources.origin(site)
        # What it begins with (None, zeros) was not made by an earlier step.
        is_computed = _COMPUTED.search(origin.expression)
        for target in targets(origin.variable) if is_computed else ():
            is_own = target == name and (site.code in own or bool(last))
            if is_own or (last and re.fullmatch(rf"\w+\.{re.escape(last)}", target)):
                yield site


def targets(variable: str) -> list[str]:
    """The names that an assignment gives a value, as an origin has them: ``out, self.state``."""
    parts = re.split(r"[,=]\s*(?![^\[(]*[\])])", variable)
    return [part.strip().strip("()") for part in parts if part.strip()]
