"""Writes random programs out of the vocabulary; the same seed gives the same program."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.fuzz.pieces import AGAIN, CHOICE, EXPRESSION, KINDS, NEW, PICK, Piece, makers, vocabulary

DEEPEST = 2
ALWAYS = ("values", "arithmetic", "reductions", "backward")
NEVER = ("endings",)
HEAVY = 0.01
"""How many of the programs compile something, which takes seconds."""

UNARY = (
    "({} * {})",
    "{}.sin()",
    "{}.cos()",
    "({} * 2)",
    "({} + 1)",
    "(3 - {})",
    "torch.tanh({})",
    "torch.sigmoid({})",
    "({} * 0.1).exp()",
    "(-{})",
    "({} / 4)",
    "torch.square({})",
)

IMPORTS = {
    r"\bnn\.": "from torch import nn",
    r"\blook\(": "from tests.fuzz.asking import look",
    r"\btree_map\(": "from torch.utils._pytree import tree_map",
    r"\bcheckpoint\(": "from torch.utils.checkpoint import checkpoint",
    r"\bcheckpoint_sequential\(": "from torch.utils.checkpoint import checkpoint_sequential",
    r"\bnumpy\.": "import numpy",
    r"concurrent\.futures": "import concurrent.futures",
    r"utils\.prune": "import torch.nn.utils.prune",
    r"flop_counter": "import torch.utils.flop_counter",
    r"FakeTensorMode": "import torch._subclasses",
    r"_python_dispatch": "import torch.utils._python_dispatch",
    r"swa_utils": "import torch.optim.swa_utils",
    r"parametriz": "import torch.nn.utils.parametrizations",
} | {
    rf"\b{name}\.": f"import {name}"
    for name in (
        *("asyncio", "atexit", "contextlib", "contextvars", "copy", "dataclasses", "functools"),
        *("gc", "inspect", "io", "logging", "os", "pickle", "signal", "subprocess", "sys"),
        *("threading", "traceback", "types", "warnings", "weakref"),
    )
}


@dataclass
class Draft:
    """A program that nobody has run: its lines, and for each the piece that it belongs to."""

    seed: str
    lines: list[str]
    pieces: list[Piece | None]

    @property
    def text(self) -> str:
        """The program."""
        return "\n".join(self.lines) + "\n"


def write(seed: str) -> Draft:
    """The program of a seed."""
    return _Writer(seed).program()


def framed(body: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """The lines that come before and after a program's own: imports, seeds, and what is left."""
    text = "\n".join(body)
    needed = [line for pattern, line in IMPORTS.items() if re.search(pattern, text)]
    head = [
        "import random",
        "import torch",
        *sorted(needed),
        "from tests.fuzz.fingerprint import tell, tell_at_exit",
        "tell_at_exit(globals())",
        f"torch.manual_seed({seed})",
        f"random.seed({seed})",
    ]
    if "import numpy" in needed:
        head.append(f"numpy.random.seed({seed})")
    return head, ["tell(globals())"]


def telling(text: str) -> str:
    """A program, framed so that in the end it tells what is left."""
    body = text.strip().splitlines()
    head, tail = framed(body, 1)
    return "\n".join([*head, *body, *tail, ""])


@dataclass
class _Writer:
    seed: str
    random: random.Random = field(init=False)
    lines: list[str] = field(default_factory=list)
    owners: list[Piece | None] = field(default_factory=list)
    pool: list[tuple[str, str]] = field(default_factory=list)
    counter: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.menu = self._menu()

    def _menu(self) -> list[Piece]:
        """Each program takes from some of the pieces only, so that these meet more often."""
        heavy = self.random.random() < HEAVY
        menu = []
        for category, pieces in vocabulary().items():
            always = category in ALWAYS or (heavy and category == "compile")
            if category in NEVER or not (always or self.random.random() < 0.3):
                continue
            share = 1.0 if always else self.random.choice([0.3, 0.6, 1.0])
            menu += [
                piece
                for piece in pieces
                if (heavy or "heavy" not in piece.flags)
                and "tail" not in piece.flags
                and self.random.random() < share
            ]
        return menu

    def program(self) -> Draft:
        self._values()
        for _ in range(self.random.choice([2, 4, 6, 9, 14, 20])):
            self._emit(self._choice(), 0)
        self._end()
        head, tail = framed(self.lines, self.random.randrange(100))
        return Draft(
            self.seed,
            [*head, *self.lines, *tail],
            [*[None] * len(head), *self.owners, *[None] * len(tail)],
        )

    def _end(self) -> None:
        if self.random.random() < 0.8:
            self._emit(self._weighted(vocabulary()["backward"]), 0)
        for _ in range(self.random.choice([0, 0, 1, 3])):
            self._emit(self._choice(), 0)
        self._tail()

    def _values(self) -> None:
        leaves = [piece for piece in vocabulary()["values"] if "leaf" in piece.makes]
        for _ in range(self.random.choice([1, 2, 3])):
            self._emit(self._weighted(leaves), 0)

    def _tail(self) -> None:
        tails = [
            piece for pieces in vocabulary().values() for piece in pieces if "tail" in piece.flags
        ]
        if self.random.random() < 0.04:
            self._emit(self._weighted(tails), 0)
        if self.random.random() < 0.12:
            self._emit(self._weighted(vocabulary()["endings"]), 0)

    def _choice(self, depth: int = 0) -> Piece:
        allowed = self.menu
        if depth:
            allowed = [
                piece
                for piece in self.menu
                if not piece.flags & {"top", "heavy"}
                and (depth < DEEPEST or ("$block" not in piece.text and "$local" not in piece.text))
            ]
        # Backward and plain arithmetic hold together what the others make; of these all categories
        # come up equally often, however many pieces they have.
        kind = self.random.random()
        wanted = {"backward"} if kind < 0.12 else {"arithmetic", "reductions", "values"}
        if kind > 0.3:
            others = {piece.category for piece in allowed} - set(ALWAYS)
            wanted = {self.random.choice(sorted(others))} if others else wanted
        return self._weighted([one for one in allowed if one.category in wanted] or allowed)

    def _weighted(self, pieces: Sequence[Piece]) -> Piece:
        return self.random.choices(pieces, [piece.weight for piece in pieces])[0]

    # ------------------------------------------------------------------ one piece

    def _emit(self, piece: Piece, depth: int, indent: str = "") -> None:
        text = CHOICE.sub(lambda match: self.random.choice(match[1].split("|")), piece.text)
        names = {}
        for name, kind in PICK.findall(NEW.sub("", text)):
            names[name] = self._pick(kind, depth, indent)
        kinds = {name: kind for name, (_, kind) in names.items()}
        known = {name: variable for name, (variable, _) in names.items()}
        made: list[tuple[str, str]] = []
        for name, kind, like in NEW.findall(text):
            if name not in known:
                known[name] = self._name(name)
                made.append((known[name], kind or {"leaf": "real"}.get(kinds[like], kinds[like])))
        for line in text.split("\n"):
            self._line(line, piece, known, (depth, indent))
        self.pool += made

    def _line(self, line: str, piece: Piece, known: dict[str, str], at: tuple[int, str]) -> None:
        depth, indent = at
        inner = indent + line[: len(line) - len(line.lstrip())]
        if line.strip() in ("$block", "$local"):
            before = list(self.pool)
            for _ in range(self.random.choice([1, 1, 2, 3])):
                self._emit(self._choice(depth + 1), depth + 1, inner)
            if line.strip() == "$local":
                self.pool = before
            return
        line = EXPRESSION.sub(lambda match: self._expression(match[1]), line)
        line = NEW.sub(lambda match: known[match[1]], line)
        line = PICK.sub(lambda match: known[match[1]], line)
        line = AGAIN.sub(lambda match: known[match[1]], line)
        self.lines.append(indent + line if line else "")
        self.owners.append(piece)

    def _pick(self, kind: str, depth: int, indent: str) -> tuple[str, str]:
        """A variable of a kind, the last ones rather than the first."""
        kinds = KINDS.get(kind, (kind,))
        fitting = [entry for entry in self.pool if entry[1] in kinds]
        if not fitting or self.random.random() < 0.05:
            choices = [piece for piece in makers(kind) if not depth or "top" not in piece.flags]
            self._emit(self._weighted(choices), depth, indent)
            fitting = [entry for entry in self.pool if entry[1] in kinds]
        recent = fitting[-4:] if self.random.random() < 0.7 else fitting
        return self.random.choice(recent)

    def _name(self, hint: str) -> str:
        self.counter += 1
        return f"{hint}{self.counter}"

    def _expression(self, variable: str) -> str:
        text = variable
        for _ in range(self.random.choice([1, 1, 2, 3])):
            text = self.random.choice(UNARY).replace("{}", text)
        return text
