"""The options that say where a result goes and what it looks like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from gradscope.cli.completion import files
from gradscope.formats import DRAWINGS, FORMATS, SORTABLE, Column

if TYPE_CHECKING:
    from gradscope.model.report import Report
    from gradscope.render.options import Options

    Display = Callable[[Report, Options], None]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class DrawingOptions:
    """How a graph or an answer is drawn, by the names of :class:`gradscope.render.Options`."""

    values: bool = False
    saved: bool = False
    by: str | None = None
    top: int | None = None
    sort: Column | None = None
    precision: int | None = None
    names: Literal["short", "torch"] = "short"
    depth: int | None = None
    all: bool = False
    path: str | None = None
    focus: str | None = None


@dataclass(frozen=True, kw_only=True)
class TerminalOptions:
    """How text is shown, and whether anything is said beside it."""

    width: int | None
    color: Literal["auto", "always", "never"]
    quiet: bool


@dataclass(frozen=True, kw_only=True)
class OutputOptions(DrawingOptions, TerminalOptions):
    """Where the result goes and what it looks like.

    ``held``: which of several backward calls in a saved report is drawn.  ``rank``: the gradients
    of which rank.  ``display``: what shows a graph where a notebook can draw it, if it can."""

    output: str | None
    opened: bool
    format_name: str | None
    held: int | None = None
    rank: int | None = None
    display: Display | None = None


def all_of(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator."""

    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


open_option = click.option(
    "--open",
    "opened",
    is_flag=True,
    help="Open the file in its viewer or browser; without -o a page in a temporary folder. "
    "Over SSH, or without a display: print its path.",
)

_file_options = all_of(
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        shell_complete=files,
        help="Write to FILE, whose suffix chooses the format; - is stdout.",
    ),
    open_option,
)

terminal_options = all_of(
    click.option(
        "--width",
        type=click.IntRange(min=20),
        metavar="N",
        help="Columns of the text; the terminal's own by default.",
    ),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Colour the text; auto: on a terminal, unless NO_COLOR is set.",
    ),
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        help="Hide progress and notes on stderr; errors are still shown.",
    ),
)

_precision_option = click.option(
    "--precision",
    type=click.IntRange(1, 15),
    metavar="N",
    help="Significant digits of numbers.  [default: 4, or 5 where those are all]",
)
all_option = click.option("--all", is_flag=True, help="Show everything; fold nothing.")

folding_options = all_of(
    click.option(
        "--depth",
        type=click.IntRange(min=1),
        metavar="N",
        help="Open modules down to this depth of calls.",
    ),
    all_option,
    click.option("--path", metavar="LEAF", help="Show only the ways from the root to this leaf."),
    click.option(
        "--focus",
        metavar="GLOB",
        help="Open what matches and close the rest: a module's path, a function, a variable or "
        "an expression, with * and ?.  --depth and --all then count from there.",
    ),
)
"""How much of a graph is shown."""

names_option = click.option(
    "--names",
    type=click.Choice(["short", "torch"]),
    default="short",
    show_default=True,
    help="What operations are called: Mul, or MulBackward0 as torch does, with AccumulateGrad at "
    "leaves, the numbers of next_functions, and _saved_ before what --saved shows.",
)

top_option = click.option(
    "--top",
    type=int,
    metavar="N",
    help="List only N rows, the largest first: nodes by gradient (table, csv: parameters), memory, "
    "differences; -N: from the other end.",
)

values_option = click.option(
    "--values", is_flag=True, help="Use the values of all tensors, not only of small ones."
)

saved_option = click.option("--saved", is_flag=True, help="Show what each node saved for backward.")

_FORMAT = "Output format, where the suffix of FILE does not choose it."

_list_options = all_of(
    top_option,
    click.option(
        "--sort",
        type=click.Choice(SORTABLE),
        help="Order the rows of --format table and csv by this column.",
    ),
)

output_options = all_of(
    _file_options,
    click.option("--format", "format_name", type=click.Choice(FORMATS), help=_FORMAT),
    folding_options,
    _list_options,
    names_option,
    _precision_option,
    terminal_options,
)
"""Where the result goes and what it looks like."""

rank_option = click.option(
    "--rank",
    type=click.IntRange(min=0),
    metavar="K",
    help="Under torchrun: draw the gradients of rank K.  [default: those of rank 0]",
)

study_output_options = all_of(
    _file_options,
    click.option("--format", "format_name", type=click.Choice(["text", *DRAWINGS]), help=_FORMAT),
    _precision_option,
    terminal_options,
)
"""The same for a command that tells more than a graph."""
