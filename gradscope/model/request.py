"""What a session is asked to look at, and what each study of it, a doctor, a check, an explanation
or one of memory, is asked to do; plain data, so that it exists before torch is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from gradscope.errors import RootError
from gradscope.words import option

if TYPE_CHECKING:
    from gradscope.model.observations import Step
    from gradscope.model.report import Report


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
    ``gradients``: send a gradient through (``backward``), or only walk (``trace``); ``gradient``
    may be a tensor, or numbers, where it was given in Python.  ``call``: None
    is the first that no later call builds on.  ``study`` is answered before the gradient flows,
    while all that was saved for backward is there.  ``or_graph``: where backward would need a
    gradient, and none is given, the graph alone is the answer.
    """

    gradients: bool = False
    root: str | None = None
    gradient: Any = None
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

    @property
    def of_own_pass(self) -> list[str]:
        """The options by which a pass is made that is none of the program's."""
        given = {
            "--gradient": self.gradient,
            "--root": self.root,
            "--create-graph": self.create_graph,
        }
        return [name for name, value in given.items() if value is not None]

    def waits_for(self, made: int) -> str:
        """What the program has to come to yet, after so many backward calls."""
        if self.root is not None and made >= (self.call or 1):
            calls = "backward call" if made == 1 else f"{made:,} backward calls"
            return f"waiting for --root {self.root}, not there at {calls}"
        following = max(self.call or 1, made + 1)
        so_far = f", {made:,} made" if made and made + 1 < following else ""
        return f"waiting for backward call {following:,}{so_far}"


HANDFUL = 5
"""Backward calls that are watched, however long they take, where nothing else is asked for."""

WHILE = 60.0
"""Seconds for which a program is watched then, if it has not ended before."""


@dataclass(frozen=True)
class Examination:
    """How to examine a run.

    ``steps`` backward calls are watched, or those of so many ``seconds`` from the first one on, but
    ``least`` of them; at the next one the program is stopped.  None is no limit, and where neither
    is one the program ends by itself.  It is also stopped where something serious turned up,
    unless ``keep_going``; where that is only that numbers of one step are not finite, which
    ``passing`` puts into words (None where there is more), only if the program uses them.
    ``thorough`` looks at every call in full, not only at the first ones and where something turned
    up.  ``serious`` judges the report of a step in which gradients are not finite; without it every
    such report is serious.  ``graver`` judges whether the report of a later step tells of something
    worse than the one kept so far, and not of its consequence.
    ``check_all`` compares custom Functions with finite differences whatever their size.
    ``call`` is the first call that is watched, those before it are made without a look.
    ``run_on``: the program goes on, unwatched, where it would be stopped.
    ``every_place``: the report also holds the first call of other lines that call backward.
    ``on_step`` hears of each watched call.  ``eager``: nothing is compiled by torch.compile.
    ``as_test``: a backward call that raises counts only if that ends the program, for a test
    catches what it expects; and without any call nothing is looked at, for most tests make none.
    """

    steps: int | None = None
    seconds: float | None = None
    call: int = 1
    run_on: bool = False
    least: int = 1
    keep_going: bool = False
    check_all: bool = False
    thorough: bool = False
    serious: Callable[[Report], bool] | None = None
    passing: Callable[[Report], str | None] | None = None
    graver: Callable[[Report, Report], bool] | None = None
    on_step: Callable[[Step], None] | None = None
    eager: bool = False
    as_test: bool = False
    every_place: bool = False

    def waits_for(self, made: int) -> str:
        """What the program has to come to yet, after so many backward calls."""
        return f"waiting for backward call {made + 1:,}"

    @property
    def is_close(self) -> bool:
        """Whether every call is looked at in full, because there are few, or because asked to."""
        return self.thorough or (self.steps is not None and self.steps <= HANDFUL)


@dataclass(frozen=True)
class Check(Study):
    """Compare derivatives with finite differences.

    ``node``: only the call that made this node of the graph.  ``everything``: every call, whatever
    its size; by default custom Functions, and built-in operations once a place.
    """

    room: ClassVar[str] = "analyses.check.study"
    command: ClassVar[str] = "check"
    doing: ClassVar[str] = "checking derivatives"
    field: ClassVar[str] = "checks"
    listener: ClassVar[str] = "analyses.check.tape"
    makes_calls: ClassVar[bool] = True

    node: int | None = None
    everything: bool = False


@dataclass(frozen=True)
class Explain(Study):
    """Explain the gradient of one leaf, of all of them, or what one node does.

    ``leaf`` is a name of a leaf, ``node`` an id; None where it was not asked for.  ``jacobian``:
    with the whole Jacobian of the root by the leaves.  ``everything``: every leaf, step and path,
    none folded.
    """

    room: ClassVar[str] = "analyses.explain.study"
    command: ClassVar[str] = "explain"
    doing: ClassVar[str] = "following the chain rule"
    field: ClassVar[str] = "explanation"
    makes_calls: ClassVar[bool] = True

    leaf: str | None = None
    node: int | None = None
    jacobian: bool = False
    everything: bool = False

    @property
    def needs_gradient(self) -> bool:
        """Whether what was asked for is about a gradient: a Jacobian is not."""
        return not self.jacobian


@dataclass(frozen=True)
class MemoryStudy(Study):
    """What does autograd keep alive for backward?"""

    room: ClassVar[str] = "analyses.memory.keeping"
    command: ClassVar[str] = "memory"
    doing: ClassVar[str] = "adding up the memory"
    field: ClassVar[str] = "memory"


MOST_OUTPUTS = 16
"""Elements of the root that are told of unasked."""


@dataclass(frozen=True)
class SplitStudy(Study):
    """What does each piece of the gradient bring?

    ``names``: of the tensors whose parts the pieces are; of samples, of the one tensor whose rows
    are meant.  ``most``: so many outputs.  ``only_leaves``: of terms, nothing is told of what is on
    the way.
    """

    room: ClassVar[str] = "analyses.split.study"
    command: ClassVar[str] = "backward --by"
    doing: ClassVar[str] = "taking the gradient apart"
    field: ClassVar[str] = "split"
    makes_calls: ClassVar[bool] = True

    kind: Literal["term", "sample", "output"] = "term"
    names: tuple[str, ...] = ()
    most: int = MOST_OUTPUTS
    only_leaves: bool = False

    @property
    def needs_gradient(self) -> bool:
        """Whether what was asked for is about a gradient: rows of a Jacobian are not."""
        return self.kind != "output"

    @classmethod
    def of(cls, text: str) -> SplitStudy:
        """What ``--by`` says.

        Raises:
            RootError: it can not be read.
        """
        kind, colon, rest = (part.strip() for part in text.partition(":"))
        if kind == "output" and (not colon or re.fullmatch(r"[1-9]\d{0,5}", rest)):
            return cls("output", most=int(rest or MOST_OUTPUTS))
        if kind == "sample" and (rest or not colon):
            return cls("sample", (rest,) if rest else ())
        return cls("term", () if text.strip() == "term" else _names(text))


@dataclass(frozen=True)
class DependsStudy(Study):
    """Which elements of one tensor depend on which of another?

    ``of`` and ``on`` are names; no ``of`` is the root.  ``axis``: that of both, or one of each;
    none is found by size.
    """

    room: ClassVar[str] = "analyses.depends.study"
    command: ClassVar[str] = "depends"
    doing: ClassVar[str] = "measuring what depends on what"
    field: ClassVar[str] = "dependence"
    makes_calls: ClassVar[bool] = True

    on: str
    of: str | None = None
    axis: tuple[int, ...] = ()


_NAME = r"[^\s,:()\[\]]+(?:\[[^\]]*\][^\s,:()\[\]]*)*"
"""A name of a tensor, which may have commas of its own: ``losses["a, b"]``."""


def _names(text: str) -> tuple[str, ...]:
    if not re.fullmatch(rf"\s*{_NAME}(?:\s*,\s*{_NAME})*[\s,]*", text):
        raise RootError(
            f"{option('by', text)}: that is no list of names",
            'write term, sample, output, output:4, or names of tensors: "mse, kl"',
        )
    return tuple(dict.fromkeys(re.findall(_NAME, text)))
