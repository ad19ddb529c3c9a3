"""The options that commands share, but for those of output, and what they mean taken together."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from gradscope.cli.completion import files, reports, rules
from gradscope.cli.output_options import (
    F,
    TerminalOptions,
    all_of,
    all_option,
    choice,
    flag,
    folding_options,
    names_option,
    number,
    open_option,
    saved_option,
    terminal_options,
    top_option,
    values_option,
)
from gradscope.errors import TargetError
from gradscope.formats import DIAGNOSES
from gradscope.ranks.job import WAIT
from gradscope.target import Program, Target, parse_target

if TYPE_CHECKING:
    from gradscope.model.observations import Severity

# Named here again, and not imported, because storage costs more than all of --help; a test holds
# the two together.
DEFAULT_SIZE = "1GiB"

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def _size(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """A number of bytes: 500000, 200M, 4GiB; all units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is not a size; write 500000, 200M or 4GiB")
    number, unit = match.groups()
    return int(float(number) * 1024 ** " kmgt".index(unit.lower() or " "))


max_size_option = click.option(
    "--max-size",
    callback=_size,
    default=DEFAULT_SIZE,
    metavar="SIZE",
    show_default=True,
    help="Refuse saved reports larger than this, uncompressed.",
)
"""The most that is read of a saved report."""


gradient_option = click.option(
    "--gradient",
    metavar="V",
    help="The gradient to feed in at the root, instead of the program's own: a literal, ones, "
    "zeros, randn, onehot:I,J, @FILE (.npy, .pt, .json), or an expression, which is run as Python "
    "code.",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**63 - 1),
    metavar="N",
    help="Set the seed of Python's, NumPy's and torch's random numbers before the program starts, "
    "so that every run gives the same numbers.",
)

program_options = all_of(
    click.argument("target", required=False, shell_complete=files),
    click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does."),
    click.option(
        "-c",
        "code",
        metavar="CODE",
        help="Run CODE; torch, nn, F and torch's functions are in scope.",
    ),
    click.option(
        "--let",
        "lets",
        multiple=True,
        metavar="NAME=VALUE",
        help="With -c: make a float leaf, as in --let 'a=[1,2,3]'. VALUE is run as Python code.",
    ),
    seed_option,
)
"""Which program to run."""

target_options = all_of(
    program_options,
    click.option(
        "--wait",
        type=click.FloatRange(min=0),
        default=WAIT,
        metavar="SECONDS",
        show_default=True,
        help="Under torchrun: how long rank 0 waits for the report of each other rank.",
    ),
)
"""The same, of which each rank of a job tells."""

eager_option = flag(
    "--eager",
    help="Run what torch.compile would compile as plain Python, so that its nodes have lines too "
    "(torch.compiler.set_stance('force_eager')).",
)

CALL = "Look at the program's Nth backward call; doctor: from there on.  [default: the first]"

start_options = all_of(
    click.option(
        "--root",
        metavar="EXPR",
        help="Start from this tensor: a variable of the program or an expression, which is run as "
        "Python code.",
    ),
    number("--call", least=1, help=CALL),
    flag("--run-on", help="Let the program go on after what is looked at."),
    eager_option,
)
"""Which backward call or tensor to look at."""


def _steps(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    """A number of backward calls; of all of them one beyond all others."""
    if text is None:
        return None
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    if text != "all":
        raise click.BadParameter(f"{text!r} is neither a positive number nor all")
    return sys.maxsize


def _steps_option(default: str | None = None) -> Callable[[F], F]:
    return click.option(
        "--steps",
        callback=_steps,
        default=default,
        metavar="N|all",
        help="Watch N of the program's own backward calls, from --call on; all: to its end.",
    )


_hold_option = flag(
    "--hold",
    help="Wait in a backward call in which something is found, for gradscope ask in another "
    "terminal; ask next goes on to the next one.",
)

derivative_option = click.option(
    "--create-graph",
    metavar="LEAF",
    help="Take ∂root/∂LEAF as the root (second derivatives), computed with create_graph=True. "
    "LEAF may be any tensor on the way.",
)

look_options = all_of(start_options, derivative_option, values_option, saved_option)
"""The same, and how closely."""

flow_options = all_of(
    _steps_option("1"),
    flag(
        "--histograms",
        help="Count the elements of large gradients by size, for -o FILE.html and .json; tables "
        "always have these counts.",
    ),
)
"""How closely gradients are watched, and how often."""

_node_option = click.option(
    "--node",
    type=click.IntRange(min=0),
    metavar="ID",
    help="Look only at this node: its number behind # in the output, or in --format json.",
)

check_options = all_of(
    _node_option,
    flag(
        "--every-call",
        "everything",
        help="Check every call, whatever its size, not only one at each line.",
    ),
    all_option,
)
"""Which derivatives to check, and how many of them to show."""

memory_options = all_of(
    start_options,
    choice("--by", of=["line", "module", "op", "dtype"], help="Show only this table."),
    top_option,
    all_option,
)
"""Which graph to count, and what to show of it."""

diff_options = all_of(
    click.argument("a", shell_complete=reports),
    click.argument("b", shell_complete=reports),
    seed_option,
    gradient_option,
    start_options,
    derivative_option,
    click.option(
        "--rtol",
        type=click.FloatRange(min=0),
        default=1e-5,
        metavar="R",
        show_default=True,
        help="Relative tolerance: allow a difference of R times the larger norm.",
    ),
    click.option(
        "--atol",
        type=click.FloatRange(min=0),
        default=1e-8,
        metavar="N",
        show_default=True,
        help="Absolute tolerance: allow a difference of N in any case.",
    ),
    values_option,
    top_option,
    folding_options,
)
"""What to compare, how strictly, and how much of it to show."""

explain_options = all_of(
    click.option(
        "--leaf",
        metavar="NAME",
        help="Explain the gradient of this leaf only, or of a tensor on the way: a variable that "
        'held it, or "#ID".',
    ),
    _node_option,
    flag(
        "--jacobian",
        help="Print the whole Jacobian of the root by each leaf, or by --leaf, up to 24 × 24; "
        "with --create-graph the Hessian. Needs no --gradient.",
    ),
    all_option,
    names_option,
)
"""What to explain."""

doctor_options = all_of(
    start_options,
    click.option(
        "--for",
        "duration",
        metavar="TIME",
        help="Stop the program this long after its first backward call: 90, 90s, 10m, 1h; with "
        "--steps, whichever comes first.  [default: 60s, but not before five calls]",
    ),
    _steps_option(),
    flag("--keep-going", help="Do not stop at the first serious finding."),
    _hold_option,
    flag(
        "--thorough",
        help="Examine every backward call in full. By default the first ones are, then fewer and "
        "fewer, and those where something is wrong.",
    ),
    flag(
        "--check",
        help="Compare every custom Function with finite differences, whatever its size and "
        "however long that takes.",
    ),
    choice(
        "--fail-on",
        of=["information", "warning", "error"],
        default="warning",
        help="Exit with status 1 for findings of this severity or worse.",
    ),
    click.option(
        "--ignore",
        metavar="CODE",
        multiple=True,
        shell_complete=rules,
        help="Do not apply this rule; may be repeated.",
    ),
    choice(
        "--format",
        "format_name",
        of=DIAGNOSES,
        default="text",
        help="Output format of the findings.",
    ),
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        shell_complete=files,
        help="Also write the report with its findings to FILE, whose suffix chooses the format.",
    ),
    open_option,
    terminal_options,
)
"""What a doctor is asked to do, and how the findings are told."""


watch_options = all_of(
    number(
        "--every",
        least=1,
        help="Look at one step of the optimizer in N.  [default: 10, and each of the first 20]",
    ),
    number(
        "--keep",
        least=0,
        default=5,
        help="Have the doctor look at N calls at most, each after one where something happened.",
    ),
    _hold_option,
    click.option(
        "-o",
        "--output",
        metavar="FILE.jsonl",
        shell_complete=files,
        help="Write each row to FILE as soon as it is known, for gradscope show.",
    ),
    terminal_options,
)
"""How often to look at a training, and where the rows go."""


@dataclass(frozen=True, kw_only=True)
class WatchOptions(TerminalOptions):
    """How often a training is looked at, where its rows go, and how it is shown."""

    every: int | None
    keep: int
    hold: bool
    output: str | None


@dataclass(frozen=True)
class TargetOptions:
    """Which program to run with which arguments, or which saved report to read, up to what size.

    ``cell`` is the program of ``%%gradscope``, and then the only one.  ``notes`` say how the
    command line was read.

    Raises:
        TargetError: besides a cell, another program is named.
    """

    arguments: tuple[str, ...]
    target: str | None
    module: str | None
    code: str | None
    lets: tuple[str, ...]
    max_size: int | None = None
    wait: float = WAIT
    seed: int | None = None
    cell: Program | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.cell is None:
            return
        given = {
            "-m": self.module,
            "-c": self.code,
            "--let": self.lets,
            "--seed": self.seed is not None,
            "--": self.arguments,
        }
        for word in (self.target, *(option for option, value in given.items() if value)):
            if word is not None:
                what = f"{word} is for another program than the cell below"
                raise TargetError(what, "leave it out: the cell is the program")

    def program(self) -> Target | None:
        """The program; None when the options name none.

        Raises:
            TargetError: when they name two, or the parts do not fit together.
        """
        if self.cell is not None:
            return self.cell.target
        lets = tuple(map(_let, self.lets))
        if sum(given is not None for given in (self.target, self.module, self.code)) > 1:
            what = "two programs given at once"
            raise TargetError(what, "give one of TARGET, -m MODULE, -c CODE")
        if self.code is not None:
            return Target("code", self.code, self.arguments, lets)
        if lets:
            raise TargetError("--let only works with -c", "a script makes its own tensors")
        if self.module is not None:
            return Target("module", self.module, self.arguments)
        return None if self.target is None else parse_target(self.target, self.arguments)


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(TerminalOptions):
    """How to examine a run, and what becomes of the findings."""

    duration: str | None
    steps: int | None
    root: str | None
    call: int | None
    run_on: bool
    keep_going: bool
    hold: bool
    thorough: bool
    check: bool
    eager: bool
    fail_on: Severity
    ignore: tuple[str, ...]
    format_name: str
    output: str | None
    opened: bool


@dataclass(frozen=True)
class DiffOptions:
    """The two sides of a comparison, its tolerances, and how they are looked at."""

    arguments: tuple[str, ...]
    a: str
    b: str
    rtol: float
    atol: float
    values: bool
    max_size: int
    seed: int | None
    root: str | None
    gradient: str | None
    call: int | None
    create_graph: str | None
    run_on: bool
    eager: bool

    @property
    def of_both(self) -> list[str]:
        """What is asked of both sides, as it is typed."""
        names = ("seed", "root", "gradient", "call", "create_graph", "run_on", "eager", "values")
        asked = {f"--{name.replace('_', '-')}": getattr(self, name) for name in names}
        return [
            name if value is True else f"{name}={value}"
            for name, value in asked.items()
            if value is not None and value is not False
        ]


def _let(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise TargetError(f"--let {text} gives no value", "write it as --let 'a=[1,2,3]'")
    return name.strip(), value.strip()
