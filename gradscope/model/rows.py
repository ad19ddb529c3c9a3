"""What was seen of the gradients of one step of a training that is watched.

Plain data, one line of JSON each; nothing here knows torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gradscope.model.plain import to_json
from gradscope.model.studies import Combined, Split, SplitLeaf

HEAD = b'{"gradscope":'
"""With what a log begins."""

LAYOUT = 1
"""The layout of a log; one of another is refused."""


class ModuleRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """The gradients of the parameters of one module, or of the whole model.

    Every parameter that requires grad counts in ``parameters`` and in at most one of the others:

    - ``none``: its ``.grad`` is None when the backward call has ended;
    - ``not_reached``: the call brought it nothing, and ``.grad`` holds an older gradient;
    - ``zero``: all elements of its gradient are zero;
    - ``nonfinite``: an element of its gradient is NaN or infinite.

    ``spoiled`` counts those that are not finite themselves when the step begins.

    ``norm`` is the 2-norm of all ``.grad`` that the call reached, when it ended: before any
    clipping, and divided by the scale of a GradScaler.  ``applied`` is that of all ``.grad`` when
    the optimizer had made its step: after clipping.  ``update`` is the 2-norm of what the step
    changed divided by that of the weights before it, over at most 65,536 evenly spaced elements of
    each parameter.  NaN and infinity stay what they are; None stands for what did not happen.
    """

    norm: float | None = None
    applied: float | None = None
    update: float | None = None
    parameters: int = 0
    none: int = 0
    not_reached: int = 0
    zero: int = 0
    nonfinite: int = 0
    spoiled: int = 0


class RankRow(ModuleRow, frozen=True, omit_defaults=True, kw_only=True):
    """What one process of several saw of a backward call, before they average their gradients."""

    step: int
    call: int
    loss: float | None = None
    first: str = ""
    trouble: str = ""
    finding: str = ""
    report: str = ""


class TermRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one term of a loss brings, as if it were the loss alone.

    ``norm`` is the 2-norm of its gradient, of all parameters together; ``modules`` has that of each
    module or leaf which it reaches.  A watch divides both by the scale of a GradScaler.  ``share``
    is the norm as a part of the sum of all terms' norms, and ``cosine`` that of the angle between
    its gradient and that of all other terms together: below 0 they pull apart; None where it is
    not known, as of more than 16 terms.
    """

    norm: float
    share: float
    cosine: float | None = None
    modules: Mapping[str, float] = {}


def term_rows(split: Split, parts: Mapping[str, Sequence[SplitLeaf]]) -> dict[str, TermRow]:
    """What each piece of a gradient brings to these parts, in the order of the program; nothing
    where it reaches none of them.

    Pieces of one name are numbered from 1.
    """
    reached = {name: Combined(leaves) for name, leaves in parts.items() if leaves}
    if not reached:
        return {}
    whole = Combined(leaf for leaves in parts.values() for leaf in leaves)
    # Of one without a name the number is that of a node, and another one in each step.
    names = [piece.plain_name for piece in split.pieces]
    return {
        name if names.count(name) == 1 else f"{name} {names[: at + 1].count(name)}": TermRow(
            norm=whole.norms[at],
            share=whole.shares[at],
            cosine=whole.against_others(at),
            modules={part: one.norms[at] for part, one in reached.items() if one.norms[at]},
        )
        for at, name in enumerate(names)
    }


class Row(RankRow, frozen=True, omit_defaults=True, kw_only=True):
    """The backward calls whose gradients one step uses together: one, or all that are accumulated.

    ``loss`` is the number that the call began at, divided by the scale; None where that was no
    single number.  Of several calls it is the sum, whose gradient ``.grad`` then is; ``calls`` says
    how many they are.
    ``step`` counts the steps of the optimizers before it, also those that a GradScaler left out,
    and ``call`` the backward calls, itself included, that brought a parameter of the model a
    gradient.  ``first`` is the part that is not finite whose gradient came first in the call.
    ``scale`` is that of the GradScaler that its loss went through.  ``skipped``: a GradScaler left
    the step out.  ``modules`` are the parts of the model in its own order.  ``ranks`` is what each
    process of a job saw, or of many the oddest, and ``silent`` how many have told nothing of this
    call.
    ``terms`` are those of the loss of its last call, where they were asked for and are several.
    ``trouble`` says what the row shows, where that is new: a gradient that is not finite, or has
    become zero, or a norm out of its history.  ``finding`` is what a full look at the call found,
    and ``report`` the name of the file beside the log that has all of it.
    """

    calls: int = 1
    scale: float | None = None
    skipped: bool = False
    modules: Mapping[str, ModuleRow] = {}
    terms: Mapping[str, TermRow] = {}
    ranks: Mapping[str, RankRow] = {}
    silent: int = 0


def said(rows: Iterable[tuple[int, RankRow]]) -> dict[tuple[int, str], tuple[list[int], str]]:
    """What ranks besides rank 0 have found: step and words, with those ranks and a report."""
    found: dict[tuple[int, str], tuple[list[int], str]] = {}
    for rank, row in rows:
        words = row.finding or row.trouble
        if rank and words:
            found.setdefault((row.step, words), ([], row.report))[0].append(rank)
    return found


class LogHead(msgspec.Struct, frozen=True):
    """The first line of a log."""

    gradscope: str
    every: int
    parameters: int | None
    layout: int = LAYOUT


def line_of(entry: Row | LogHead) -> bytes:
    """One line of strict JSON: numbers that are not finite are words, as in a saved Report."""
    return to_json(entry) + b"\n"


def row_of(line: bytes) -> Row:
    """Read a row from a line of a log.

    Raises:
        ValueError: the line is none that :func:`line_of` has written.
    """
    try:
        # Not strict: then a word such as "NaN" is a float.
        return msgspec.json.decode(line, type=Row, strict=False)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
