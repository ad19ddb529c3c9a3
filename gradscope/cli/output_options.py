"""The options that say where a result goes and what it looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


def flag(*names: str, help: str) -> Callable[[F], F]:
    """An option that is given or not."""
    return click.option(*names, is_flag=True, help=help)


def number(*names: str, least: int, help: str, default: int | None = None) -> Callable[[F], F]:
    """An option that takes a whole number from ``least`` on."""
    shown: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    return click.option(*names, type=click.IntRange(least), metavar="N", help=help, **shown)


def choice(
    *names: str, of: Iterable[str], help: str, default: str | None = None
) -> Callable[[F], F]:
    """An option that takes one of these words."""
    shown: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    return click.option(*names, type=click.Choice([*of]), help=help, **shown)


open_option = flag(
    "--open",
    "opened",
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
    number("--width", least=20, help="Columns of the text; the terminal's own by default."),
    choice(
        "--color",
        of=["auto", "always", "never"],
        default="auto",
        help="Colour the text; auto: on a terminal, unless NO_COLOR is set.",
    ),
    flag("-q", "--quiet", help="Hide progress and notes on stderr; errors are still shown."),
)

_precision_option = click.option(
    "--precision",
    type=click.IntRange(1, 15),
    metavar="N",
    help="Significant digits of numbers.  [default: 4, or 5 where those are all]",
)
all_option = flag("--all", help="Show everything; fold nothing.")

folding_options = all_of(
    number("--depth", least=1, help="Open modules down to this depth of calls."),
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

names_option = choice(
    "--names",
    of=["short", "torch"],
    default="short",
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

values_option = flag("--values", help="Use the values of all tensors, not only of small ones.")

saved_option = flag("--saved", help="Show what each node saved for backward.")

_FORMAT = "Output format, where the suffix of FILE does not choose it."

_list_options = all_of(
    top_option,
    choice("--sort", of=SORTABLE, help="Order the rows of --format table and csv by this column."),
)

output_options = all_of(
    _file_options,
    choice("--format", "format_name", of=FORMATS, help=_FORMAT),
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
    choice("--format", "format_name", of=["text", *DRAWINGS], help=_FORMAT),
    _precision_option,
    terminal_options,
)
"""The same for a command that tells more than a graph."""
