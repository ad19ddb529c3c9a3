"""What was typed, as commands get it, and how a command ended; plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from gradscope.options import Looking, Running, Showing, Writing

if TYPE_CHECKING:
    from gradscope.model.report import Report
    from gradscope.render.options import Options
    from gradscope.target import Ending, Program

Record = TypeVar("Record")


@dataclass(frozen=True, kw_only=True)
class Given(Running, Looking, Showing, Writing):
    """What a command was given; an option that it does not have is as if it were left out.

    ``arguments`` are those of the program.  ``notes`` say how the command line was read.  ``cell``
    is the program of ``%%gradscope``, and then the only one.  ``display``: what shows a graph where
    a notebook can draw it.  ``or_graph``: where backward would need a gradient, and none is given,
    the graph alone is the answer.
    """

    arguments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cell: Program | None = None
    display: Callable[[Report, Options], None] | None = None
    or_graph: bool = False

    def part(self, kind: Callable[..., Record], **more: Any) -> Record:
        """A record with what was given for its fields; and with ``more``."""
        own = {one.name: getattr(self, one.name) for one in fields(kind) if hasattr(self, one.name)}  # type: ignore[arg-type]
        return kind(**own | more)


@dataclass
class Result:
    """The exit status, and how the user's program ended if one ran.

    A status other than 0 is ours; with 0 the program's own ending decides.
    """

    status: int = 0
    ending: Ending | None = None
