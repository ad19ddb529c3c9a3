"""From a draft to a program that runs: statements that python cannot run are taken out.

A piece may not fit the variables that it was given; running it tells.  A few errors are left in, as
programs have them, and a few are caught."""

from __future__ import annotations

import ast
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from tests.fuzz.edit import Statement, caught, statements, without
from tests.fuzz.pieces import Piece
from tests.fuzz.process import forked
from tests.fuzz.trial import Place
from tests.fuzz.writer import Draft

FAILED = "failed.json"
ROUNDS = 5
LIMIT = 30.0
CAUGHT, LEFT = 0.15, 0.03
"""How many of the statements that fail are caught, and left as they are."""


def repaired(draft: Draft, place: Place) -> Draft | None:
    """The draft without what fails; None when it cannot be run at all."""
    chance = random.Random(f"repair {draft.seed}")
    lines, pieces = draft.lines, draft.pieces
    accepted: set[str] = set()
    for _ in range(ROUNDS):
        place.text = "\n".join(lines) + "\n"
        failed = _failing(place)
        if failed is None:
            return None
        bad = [one for one in _innermost(lines, failed) if _is_removable(pieces[one.first])]
        bad = [one for one in bad if lines[one.first] not in accepted]
        if not bad:
            return Draft(draft.seed, lines, pieces)
        lines, pieces = _mended(lines, pieces, bad, (chance, accepted))
    return None


def _is_removable(piece: Piece | None) -> bool:
    return piece is None or piece.category != "endings"


def _mended(
    lines: list[str],
    pieces: list[Piece | None],
    bad: list[Statement],
    how: tuple[random.Random, set[str]],
) -> tuple[list[str], list[Piece | None]]:
    chance, accepted = how
    taken = []
    for statement in sorted(bad, key=lambda one: -one.first):
        choice, piece = chance.random(), pieces[statement.first]
        if choice < CAUGHT and not statement.is_compound:
            lines = caught(lines, statement)
            added = len(lines) - len(pieces)
            pieces = [
                *pieces[: statement.first],
                *[piece] * (added + statement.end - statement.first),
                *pieces[statement.end :],
            ]
            # The rest of this round's places would be wrong now: they come up again in the next.
            return lines, pieces
        if choice < CAUGHT + LEFT:
            accepted.add(lines[statement.first])
        else:
            taken.append(statement)
    lines, places = without(lines, taken)
    return lines, [pieces[place] for place in places]


def _innermost(lines: list[str], failed: list[int]) -> list[Statement]:
    """The statement around each line that failed; of a function the whole is never taken."""
    found = statements(lines)
    around = []
    for line in failed:
        holding = [one for one in found if one.first <= line < one.end]
        if holding and holding[-1] not in around:
            around.append(holding[-1])
    return around


def _failing(place: Place) -> list[int] | None:
    """The lines (from 0) of the module at which statements fail, when it goes on after each."""
    folder = place.fresh()
    target = folder / FAILED
    done = forked(_leniently(place.program, target), folder, LIMIT)
    if done.timed_out or not target.exists():
        return None
    found: list[int] = json.loads(target.read_text())
    return found


def _leniently(path: Path, target: Path) -> Callable[[], None]:
    def run() -> None:
        failed: list[int] = []
        target.write_text("[]")
        main = ModuleType("__main__")
        main.__file__ = str(path)
        sys.modules["__main__"] = main
        sys.argv[:] = [str(path)]
        for statement in ast.parse(path.read_bytes()).body:
            code = compile(ast.Module([statement], []), str(path), "exec")
            try:
                exec(code, vars(main))
            except Exception as error:
                frame = error.__traceback__
                while frame is not None and frame.tb_frame.f_code is not code:
                    frame = frame.tb_next
                failed.append((statement.lineno if frame is None else frame.tb_lineno) - 1)
                target.write_text(json.dumps(failed))

    return run
