"""The vocabulary: what random programs are made of, read from the text files beside this module.

A file holds categories (``== name``) of pieces (``-- name !flags``, then lines of python).  In a
piece

    ``$x:KIND``          is a variable of that kind that the program has, ``$x`` the same again
    ``$+y:KIND``         is a new one; ``$+y=x`` has the kind of ``$x``
    ``$<a|b|c>``         is one of these texts (which may hold placeholders)
    ``$e(t)``            is an expression of the variable ``t``
    ``$block``           on a line of its own: other pieces; ``$local``: with names of their own

Flags: ``!w3`` makes a piece three times as frequent, ``!rare`` ten times as rare; ``!top`` keeps it
out of blocks, ``!tail`` puts it at the end; ``!heavy`` allows it in few programs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

VOCABULARY = Path(__file__).parent / "vocabulary"
CHOICE = re.compile(r"\$<(.*?)(?<! )>")
NEW = re.compile(r"\$\+(\w+)(?::(\w+)|=(\w+))")
PICK = re.compile(r"\$(\w+):(\w+)")
AGAIN = re.compile(r"\$(\w+)")
EXPRESSION = re.compile(r"\$e\((.*?)\)")

KINDS = {"num": ("leaf", "real", "cplx"), "real": ("leaf", "real")}
"""Kinds that stand for several."""


@dataclass(frozen=True)
class Piece:
    """Some lines of a program."""

    name: str
    category: str
    text: str
    flags: frozenset[str]

    @property
    def weight(self) -> float:
        """How often it is taken, compared with others of its category."""
        if "rare" in self.flags:
            return 0.1
        return next((float(flag[1:]) for flag in self.flags if re.fullmatch(r"w\d+", flag)), 1.0)

    @property
    def makes(self) -> set[str]:
        """The kinds of the variables that it makes."""
        return {kind for _, kind, _ in NEW.findall(self.text) if kind}

    @property
    def needs(self) -> set[str]:
        """The kinds of the variables that it uses."""
        return {kind for _, kind in PICK.findall(self.text)}


@cache
def vocabulary() -> dict[str, list[Piece]]:
    """All pieces by category."""
    found: dict[str, list[Piece]] = {}
    for path in sorted(VOCABULARY.glob("*.txt")):
        for section in re.split(r"^== ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            category, _, body = section.partition("\n")
            found[category] = [
                _piece(category, text) for text in re.split(r"^-- ", body, flags=re.MULTILINE)[1:]
            ]
    return found


def _piece(category: str, section: str) -> Piece:
    head, _, text = section.partition("\n")
    name, *flags = re.split(r" !", head.strip())
    return Piece(name, category, text.rstrip("\n"), frozenset(flags))


@cache
def makers(kind: str) -> list[Piece]:
    """The pieces that make a variable of a kind out of what is easily had."""
    simple = {"leaf", "real", "num"} | ({"cplx"} if kind != "cplx" else set())
    found = [
        piece
        for pieces in vocabulary().values()
        for piece in pieces
        if kind in piece.makes
        and piece.needs <= simple | ({"mod"} if kind == "opt" else set())
        and "$block" not in piece.text
        and not piece.flags & {"heavy", "tail", "top"}
    ]
    if kind in KINDS:
        found = [piece for piece in vocabulary()["values"] if "leaf" in piece.makes]
    return found
