"""What a session is asked to look at; plain data, so that it exists before torch is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


class Study:
    """A question about the live graph that graph and gradients alone do not answer.

    A subclass is a frozen dataclass of what was asked.  ``room`` is the module under
    :mod:`gradscope` whose function ``study(live, asked)`` answers it, with the struct that
    goes into the Report's ``field``.  ``listener`` is the module whose ``LISTENER`` hears of
    every call meanwhile, where what a recorder remembers is too little.  ``command`` is
    whose it is, ``doing`` what it does meanwhile, in words.  ``makes_calls``: it makes calls of its
    own, in which other processes would have to take part.
    """

    room: ClassVar[str]
    command: ClassVar[str]
    doing: ClassVar[str]
    field: ClassVar[str]
    listener: ClassVar[str] = ""
    makes_calls: ClassVar[bool] = False

    @property
    def needs_gradient(self) -> bool:
        """Whether there is no answer where backward needs a gradient, and none is given."""
        return True


@dataclass(frozen=True)
class Request:
    """What to look at.

    A field that has the name of an option is what that says (:mod:`gradscope.options`).
    ``gradients``: send a gradient through (``backward``), or only walk (``trace``).  ``call``: None
    is the first that no later call builds on.  ``study`` is answered before the gradient flows,
    while all that was saved for backward is there.  ``or_graph``: where backward would need a
    gradient, and none is given, the graph alone is the answer.  ``root_line``: the line of the
    program's file behind which the name ``root`` gets no value any more, and one at most; None if
    not known.
    """

    gradients: bool = False
    root: str | None = None
    gradient: str | None = None
    call: int | None = None
    run_on: bool = False
    values: bool = False
    saved: bool = False
    histograms: bool = False
    steps: int = 1
    create_graph: str | None = None
    study: Study | None = None
    eager: bool = False
    or_graph: bool = False
    root_line: int | None = None

    def waits_for(self, made: int) -> str:
        """What the program has to come to yet, after so many backward calls."""
        if self.root is not None and made >= (self.call or 1):
            calls = "backward call" if made == 1 else f"{made:,} backward calls"
            return f"waiting for --root {self.root}, not there at {calls}"
        following = max(self.call or 1, made + 1)
        so_far = f", {made:,} made" if made and made + 1 < following else ""
        return f"waiting for backward call {following:,}{so_far}"
