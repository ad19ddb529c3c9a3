"""Small pieces of sentences, the same wherever gradscope says something.

Knows nothing of where a text comes from or goes to: what is foreign in it is made visible by
:mod:`gradscope.escaping`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

VERSION = "0.1.0"
"""Of this package; the one place where it is written down."""

_ENDING = re.compile(r"Backward(?:Autograd\w*)?\d*$")
_PLURALS = {"leaf": "leaves", "index": "indices"}
"""Of the nouns that do not only take an s."""

MOST_COMPARED = 20_000
"""Names among which the nearest are looked for."""

LONGEST_NAME = 200
"""Characters of a name that are compared; a file may hold one of millions."""


SIGNS = {
    "root": ("◇", "root, where backward starts"),
    "op": ("○", "operation"),
    "leaf": ("●", "leaf, which gets the .grad"),
    "again": ("↪", "shown above already"),
    "edge": ("↓", "what comes from above, of all that arrives"),
    "sum": ("Σ", "sum of the edges into it"),
    "hook": ("↻", "changed by a hook"),
    "module": ("▸", "closed: a module, loop or function"),
    "silent": ("∅", "no gradient arrives"),
    "bad": ("✖", "NaN or infinity, an error, or the call that failed"),
    "look": ("△ ▲", "worth a look"),
    "saved": ("▫", "saved for backward"),
}
"""The signs of a tree, by the names that a set of signs has for them, and what they mean."""


_is_python = ContextVar("gradscope.words.is_python", default=False)


@contextmanager
def in_python() -> Iterator[None]:
    """In the block, or in the function that this decorates, a caller of python is spoken to."""
    before = _is_python.set(True)
    try:
        yield
    finally:
        _is_python.reset(before)


def speaks_python() -> bool:
    """Whether a caller of python is spoken to, and not a user of the command line."""
    return _is_python.get()


def either(typed: str, called: str) -> str:
    """What a user types at the command line, or what one calls in python: as is fitting now."""
    return called if speaks_python() else typed


def option(name: str, value: str | int | None = None) -> str:
    """How a user asks for something: ``--depth N``, in python ``depth=N``; ``--all``, ``all=True``.

    A value in capital letters stands for one that the user is to choose.
    """
    typed = f"--{name}" if value is None else f"--{name} {value}"
    told = value if isinstance(value, int) or value in ("N", "ID") else repr(value)
    return either(typed, f"{name.replace('-', '_')}={True if value is None else told}")


def folding() -> str:
    """The ways to show less of a graph."""
    return f"{option('depth', 'N')}, {option('focus', 'GLOB')} or {option('path', 'LEAF')}"


def short_op(op: str) -> str:
    """``Mul`` of torch's ``MulBackward0`` or ``MulBackwardAutogradNestedTensor0``; what is nothing
    but an ending stays.

    A user's class keeps its name; :attr:`gradscope.model.report.Node.short_op` knows which it is.
    """
    name = op.rpartition("::")[2]
    return _ENDING.sub("", name) or name or op


def count(amount: int, noun: str) -> str:
    """``1 node``, ``1,072 nodes``, ``2 leaves``; of several words the last is put in the plural."""
    if amount != 1:
        first, space, last = noun.rpartition(" ")
        noun = first + space + _PLURALS.get(last, f"{last}s")
    return f"{amount:,} {noun}"


def duration(seconds: float) -> str:
    """``0.5 s``, ``90 s``, ``10 min``, ``1.5 h``: in the unit in which it is written shortest."""
    ways = [f"{seconds / size:.3g} {unit}" for size, unit in ((1, "s"), (60, "min"), (3600, "h"))]
    return min(ways, key=len)


def listed(names: Iterable[str], most: int = 4) -> str:
    """``a, b and 5 more``: every name once, and so many of them."""
    every = list(dict.fromkeys(name or "(no name)" for name in names))
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def ranked(numbers: Sequence[int], told: Callable[[Iterable[str]], str] = listed) -> str:
    """``rank 1``; ``ranks 0, 2`` as ``told`` puts them together."""
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {told(map(str, numbers))}"


def joined(names: Iterable[str]) -> str:
    """``a, b and c``."""
    *before, last = [*names] or [""]
    return f"{', '.join(before)} and {last}" if before else last


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The names there are, those most like a name that does not exist first.

    None is left out for being unlike: where nothing is near, any are still the best help.
    """
    # Not above: most runs name nothing that does not exist.
    from difflib import SequenceMatcher

    # What is compared with many stands second: its statistics are then made once.
    matcher = SequenceMatcher(b=name[:LONGEST_NAME])

    def likeness(known: str) -> float:
        matcher.set_seq1(known[:LONGEST_NAME])
        return matcher.ratio()

    every = list(dict.fromkeys(names))
    compared = sorted(every[:MOST_COMPARED], key=likeness, reverse=True)
    return compared + every[MOST_COMPARED:]


def first_line(text: str) -> str:
    """The first line that says something; messages of exceptions may have thousands."""
    lines = text.strip().splitlines()
    return lines[0].rstrip() if lines else ""


def one_line(text: str) -> str:
    """Text of several lines, such as an expression, as it would stand on one."""
    # Without a regular expression: one that looks for blanks around a line break takes a time
    # that grows with the square of the blanks.
    lines = (line.strip() for line in text.strip().split("\n"))
    return " ".join(line for line in lines if line)


def misfit(gradient: str, root: str) -> str:
    """What is wrong with a gradient, by the shapes of both."""
    return f"the gradient has shape {gradient}, but the root has shape {root}"


def added_up(numbers: int, elements: int) -> str:
    """What answers from the time of early torch make of several numbers for a root of one; else
    ""."""
    if elements != 1 or numbers < 2:
        return ""
    return (
        f"the root is one number, so torch takes one and refuses {numbers}; early versions added "
        "them up, which is why old answers show other results"
    )


def pattern(names: Sequence[str]) -> str:
    """What names that differ in one place have in common: ``h.*`` of ``h.0`` and ``h.1``, ``w[*]``
    of ``w[0]`` and ``w[1]``."""
    distinct = list(dict.fromkeys(names))
    if len(distinct) < 2:
        return "".join(distinct)
    rows = [re.split(r"([.\[\]])", name) for name in distinct]
    if len({len(row) for row in rows}) == 1:
        columns = zip(*rows, strict=True)
        return "".join(column[0] if len(set(column)) == 1 else "*" for column in columns)
    return f"{distinct[0]} … {distinct[-1]}"


_PACKAGES = re.compile(r"^.*[/\\](site|dist)-packages[/\\]")


def without_environment(file: str) -> str:
    """``torch/nn/init.py`` of a file of an installed package, wherever that lies; another as it
    is."""
    return _PACKAGES.sub("", file)
