"""How a gradient is to be taken apart; plain data, so that it exists before torch is imported."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from gradscope.errors import RootError
from gradscope.model.request import Study
from gradscope.words import option

MOST_OUTPUTS = 16
"""Elements of the root that are told of unasked."""


@dataclass(frozen=True)
class SplitStudy(Study):
    """What does each piece of the gradient bring?

    ``names``: of the tensors whose parts the pieces are; of samples, of the one tensor whose rows
    are meant.  ``most``: so many outputs.  ``budget``: seconds, after which what is known is told.
    """

    room: ClassVar[str] = "analyses.split.study"
    command: ClassVar[str] = "backward --by"
    doing: ClassVar[str] = "taking the gradient apart"
    field: ClassVar[str] = "split"
    makes_calls: ClassVar[bool] = True

    kind: Literal["term", "sample", "output"] = "term"
    names: tuple[str, ...] = ()
    most: int = MOST_OUTPUTS
    budget: float | None = None

    @property
    def needs_gradient(self) -> bool:
        """Whether what was asked for is about a gradient: rows of a Jacobian are not."""
        return self.kind != "output"

    @classmethod
    def of(cls, text: str, budget: float | None = None) -> SplitStudy:
        """What ``--by`` says.

        Raises:
            RootError: it can not be read.
        """
        kind, colon, rest = (part.strip() for part in text.partition(":"))
        if kind == "output" and (not colon or re.fullmatch(r"[1-9]\d{0,5}", rest)):
            return cls("output", most=int(rest or MOST_OUTPUTS), budget=budget)
        if kind == "sample" and (rest or not colon):
            return cls("sample", (rest,) if rest else (), budget=budget)
        names = () if text.strip() == "term" else _names(text)
        return cls("term", names, budget=budget)


def _names(text: str) -> tuple[str, ...]:
    """The names in a list of them, which may have commas of their own: ``losses["a, b"], kl``."""
    source = f"({text.strip().strip(',')},)"
    try:
        parsed = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        parsed = None
    names = [ast.get_source_segment(source, one) for one in getattr(parsed, "elts", ())]
    if not names or None in names:
        raise RootError(
            f"{option('by', text)}: that is no list of names",
            'write term, sample, output, output:4, or names of tensors: "mse, kl"',
        )
    return tuple(dict.fromkeys(name for name in names if name is not None))
