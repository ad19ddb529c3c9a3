"""The options: what each is called and takes, what its help says, and which commands have it.

An option is one row: a field of one of the :data:`GROUPS`, made by :func:`row`.  The command line
makes its options and their help of the rows, ``[tool.gradscope]`` its keys, and the interface of
Python the words and limits of its keywords.  Must not know click, which Python does without.
"""

# Without `from __future__ import annotations`: the kinds are read from the annotations.
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from gradscope.formats import DIAGNOSES, DRAWINGS, FORMATS, MAX_SIZE, Column
from gradscope.ranks import WAIT

RUNS = "trace backward explain doctor memory check depends watch"
LOOKS = "trace backward explain doctor memory check depends diff"
GRAPHS = "trace backward show diff"
STUDIES = "explain memory check depends diff"
READS = "explain doctor memory check depends show diff"
SHOWS = "trace backward explain memory check depends show diff"
EVERY = "trace backward explain doctor memory check depends watch show diff"
"""The commands that run a program, look at one of its calls, draw a graph, tell more than a graph,
read a saved report, write in any format; and all that have something to show."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option, or argument, of the command line: a row of the table.

    ``name``, ``kind`` and ``default`` are those of the field that it stands at, ``group`` is its
    class.  ``text`` is its line of the help: names, a word for its value, two blanks, and what it
    does.  ``on`` are the commands that have it.  ``least`` and ``most`` limit a number, ``choices``
    are the words that it takes, ``read`` makes a value of what was typed (raising ValueError).
    ``without`` says what holds where it is left out and has no plain default.  ``is_setting``: a
    project may choose the default.
    """

    name: str
    kind: Any
    default: Any
    group: type
    text: str
    on: str
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    read: Callable[[str], Any] | None = None
    without: str = ""
    is_setting: bool = False

    @property
    def names(self) -> list[str]:
        """How it is typed; an argument has no name."""
        return [word for word in self._spelled if word.startswith("-")]

    @property
    def value(self) -> str:
        """The word for its value; "" where there is none."""
        return next((word for word in self._spelled if not word.startswith("-")), "")

    @property
    def words(self) -> str:
        """What it does."""
        return self.text.partition("  ")[2]

    @property
    def _spelled(self) -> list[str]:
        return self.text.partition("  ")[0].replace(",", "").split()


def row(text: str, on: str, *, default: Any = None, **more: Any) -> Any:
    """A field with its row: what an :class:`Option` is besides."""
    return rows(variant(text, on, **more), default=default)


def flag(text: str, on: str, **more: Any) -> Any:
    """The same of an option that is given or not."""
    return row(text, on, default=False, **more)


def rows(*variants: dict[str, Any], default: Any = None) -> Any:
    """A field whose option does not mean the same in all commands."""
    return field(default=default, metadata={"rows": variants})


def variant(text: str, on: str, **more: Any) -> dict[str, Any]:
    """What it means in some of them."""
    return {"text": text, "on": on, **more}


def read_size(text: str) -> int:
    """A number of bytes: 500000, 200M, 4GiB; all units are powers of 1024.

    Raises:
        ValueError: it is none.
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write 500000, 200M or 4GiB")
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2] or " "))


def read_duration(text: str) -> float:
    """Seconds, of ``90``, ``90s``, ``1.5m`` or ``1h``.

    Raises:
        ValueError: it is none of these, or 0.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*([smh]?)", text.strip(), re.ASCII)
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if 0 < seconds < float("inf"):
        return seconds
    raise ValueError(f"{text!r} is not a duration; write 90s, 10m or 1h")


def read_axes(text: str) -> tuple[int, ...]:
    """One axis, or one of each of two tensors.

    Raises:
        ValueError: it is neither.
    """
    if re.fullmatch(r"\s*-?\d{1,4}\s*(,\s*-?\d{1,4}\s*)?", text, re.ASCII):
        return tuple(map(int, text.split(",")))
    raise ValueError(f"{text!r} is neither an axis nor two; write 1, or 0,1")


def read_steps(text: str) -> int:
    """A number of backward calls; of all of them one beyond all others.

    Raises:
        ValueError: it is none.
    """
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    if text != "all":
        raise ValueError(f"{text!r} is neither a positive number nor all")
    return sys.maxsize


_FORMAT = "--format FORMAT  Output format, where the suffix of FILE does not choose it:"


@dataclass(frozen=True, kw_only=True)
class Running:
    """Which program to run, and how."""

    target: str | None = row("TARGET", RUNS)
    file: str = row("FILE.json", "show", default="")
    a: str = row("A", "diff", default="")
    b: str = row("B", "diff", default="")
    module: str | None = row("-m MODULE  Run a module, as python -m does.", RUNS)
    code: str | None = row(
        "-c CODE  Run CODE; torch, nn, F and torch's functions are in scope.", RUNS
    )
    lets: tuple[str, ...] = row(
        "--let NAME=VALUE  With -c: make a float leaf, as in --let 'a=[1,2,3]'. VALUE is run "
        "as Python code.",
        RUNS,
        default=(),
    )
    seed: int | None = row(
        "--seed N  Set the seed of Python's, NumPy's and torch's random numbers before the "
        "program starts, so that every run gives the same numbers.",
        f"{RUNS} diff",
        least=0,
        most=2**63 - 1,
    )
    run_on: bool = flag("--run-on  Let the program go on after what is looked at.", LOOKS)
    eager: bool = flag(
        "--eager  Run what torch.compile would compile as plain Python, so that its nodes "
        "have lines too (torch.compiler.set_stance).",
        LOOKS,
    )
    wait: float = row(
        "--wait SECONDS  Under torchrun: how long rank 0 waits for the report of each other rank.",
        "trace backward explain doctor memory check depends",
        default=WAIT,
        least=0,
    )


@dataclass(frozen=True, kw_only=True)
class Looking:
    """What to look at."""

    leaf: str | None = row(
        "--leaf NAME  Explain the gradient of this leaf only, or of a tensor on the way: a "
        'variable that held it, or "#ID".',
        "explain",
    )
    node: int | None = row(
        "--node ID  Look only at this node: its number behind # in the output, or in --format"
        " json.",
        "explain check",
        least=0,
    )
    jacobian: bool = flag(
        "--jacobian  Print the whole Jacobian of the root by each leaf, or by --leaf, up to "
        "24 × 24; with --create-graph the Hessian. Needs no --gradient.",
        "explain",
    )
    every_call: bool = flag(
        "--every-call  Check every call, whatever its size, not only one at each line.", "check"
    )
    root: str | None = row(
        "--root EXPR  Start from this tensor: a variable or an expression, run as Python code.",
        "trace backward explain memory check depends diff",
    )
    gradient: str | None = row(
        "--gradient V  Feed in this gradient, not the program's own: a literal, ones, zeros, "
        "randn, onehot:I,J, @FILE (.npy, .pt, .json), or an expression, run as Python code.",
        "backward explain check diff",
    )
    call: int | None = rows(
        variant(
            "--call N  Look at the Nth backward call.",
            "trace backward explain memory check depends diff",
            least=1,
            without="the first",
        ),
        variant(
            "--call N  Begin with the Nth backward call.", "doctor", least=1, without="the first"
        ),
    )
    held: int | None = row(
        "--call N  Draw the Nth backward call, of those in the report.",
        "show",
        least=0,
        without="the first",
    )
    steps: int | None = row(
        "--steps N|all  Watch N of the program's own backward calls, from --call on; all: to "
        "its end.",
        "backward doctor",
        read=read_steps,
    )
    duration: float | None = row(
        "--for TIME  Stop the program this long after its first backward call: 90, 90s, 10m, "
        "1h; with --steps, whichever comes first.",
        "doctor",
        read=read_duration,
        without="60s, but not before five calls",
    )
    keep_going: bool = flag("--keep-going  Do not stop at the first serious finding.", "doctor")
    every: int | None = row(
        "--every N  Look at one step of the optimizer in N.",
        "watch",
        least=1,
        without="10, and each of the first 20",
    )
    keep: int = row(
        "--keep N  Have the doctor look at N calls at most, each after one where something "
        "happened.",
        "watch",
        default=5,
        least=0,
    )
    thorough: bool = flag(
        "--thorough  Examine every backward call in full. By default the first ones are, then"
        " fewer and fewer, and those where something is wrong.",
        "doctor",
    )
    check: bool = flag(
        "--check  Compare every custom Function with finite differences, whatever its size "
        "and however long that takes.",
        "doctor",
    )
    of: str | None = row(
        '--of NAME  Ask of this tensor: a variable, or "#ID".', "depends", without="the root"
    )
    on: str | None = row("--on NAME  Ask how it depends on this tensor or leaf.", "depends")
    axis: tuple[int, ...] | None = row(
        "--axis AXES  Tell apart the indices along this axis of both, or along one of each: 0,1.",
        "depends",
        read=read_axes,
        without="the first of one size",
    )
    create_graph: str | None = row(
        "--create-graph LEAF  Take ∂root/∂LEAF as the root (second derivatives), computed "
        "with create_graph=True. LEAF may be any tensor on the way.",
        "trace backward explain diff",
    )
    values: bool = flag("--values  Use the values of all tensors, not only of small ones.", GRAPHS)
    saved: bool = flag("--saved  Show what each node saved for backward.", "trace backward show")
    histograms: bool = flag(
        "--histograms  Count the elements of large gradients by size, for -o FILE.html and "
        ".json; tables always have these counts.",
        "backward",
    )
    rtol: float = row(
        "--rtol R  Relative tolerance: allow a difference of R times the larger norm.",
        "diff",
        default=1e-05,
        least=0,
    )
    atol: float = row(
        "--atol N  Absolute tolerance: allow a difference of N in any case.",
        "diff",
        default=1e-08,
        least=0,
    )


@dataclass(frozen=True, kw_only=True)
class Showing:
    """What to show of it, and how."""

    depth: int | None = row("--depth N  Open modules down to this depth of calls.", GRAPHS, least=1)
    all: bool = flag("--all  Show everything; fold nothing.", f"{GRAPHS} {STUDIES}")
    focus: str | None = row(
        "--focus GLOB  Open what matches and close the rest: a module's path, a function, a "
        "variable or an expression, with * and ?.  --depth and --all then count from there.",
        GRAPHS,
    )
    path: str | None = row("--path LEAF  Show only the ways from the root to this leaf.", GRAPHS)
    by: str | None = rows(
        variant(
            "--by PIECES  Take the gradient apart, and show what each piece brings to each "
            'parameter: term, the terms of the loss; "mse, kl", what goes through these tensors; '
            "sample or sample:NAME, rows of a batch; output or output:K, rows of the Jacobian.",
            "backward",
        ),
        variant(
            "--by PIECES  Also measure what each of these brings, at each step that is looked at:",
            "watch",
            choices=("term",),
        ),
        # The last, which is the one that a report's methods have.
        variant(
            "--by TABLE  Show only this table:", "memory", choices=("line", "module", "op", "dtype")
        ),
    )
    top: int | None = row(
        "--top N  List only N rows, the largest first: nodes by gradient (table, csv: "
        "parameters), memory, differences; -N: from the other end.",
        f"{GRAPHS} memory",
    )
    sort: Column | None = row(  # noqa: RUF009
        "--sort COLUMN  Order the rows of --format table and csv by this column:",
        "trace backward show",
    )
    ignore: tuple[str, ...] = row(
        "--ignore RULE  Do not apply this rule; may be repeated.",
        "doctor",
        default=(),
        is_setting=True,
    )
    fail_on: Literal["information", "warning", "error"] = row(
        "--fail-on SEVERITY  Exit with status 1 for findings of this severity or worse:",
        "doctor",
        default="warning",
        is_setting=True,
    )
    names: Literal["short", "torch"] = row(
        "--names  What operations are called: Mul, or MulBackward0 as torch does, with "
        "AccumulateGrad at leaves, the numbers of next_functions, and _saved_ before what "
        "--saved shows.",
        "trace backward explain show",
        default="short",
    )
    precision: int | None = row(
        "--precision N  Significant digits of numbers.",
        SHOWS,
        least=1,
        most=15,
        without="4, or 5 where those are all",
        is_setting=True,
    )
    width: int | None = row(
        "--width N  Columns of the text; the terminal's own by default.",
        EVERY,
        least=20,
        is_setting=True,
    )
    color: Literal["auto", "always", "never"] = row(
        "--color  Colour the text; auto: on a terminal, unless NO_COLOR is set.",
        EVERY,
        default="auto",
        is_setting=True,
    )


@dataclass(frozen=True, kw_only=True)
class Writing:
    """Where to read and write."""

    output: str | None = rows(
        variant(
            "-o, --output FILE  Write to FILE, in the format of its suffix; - is stdout.", SHOWS
        ),
        variant(
            "-o, --output FILE  Also write the report with its findings to FILE, whose suffix "
            "chooses the format.",
            "doctor",
        ),
        variant(
            "-o, --output FILE.jsonl  Write each row to FILE as soon as it is known, for "
            "gradscope show.",
            "watch",
        ),
    )
    opened: bool = flag(
        "--open  Open the file, or without -o a page in a temporary folder. Over SSH, or "
        "without a display: print its path.",
        f"{SHOWS} doctor",
    )
    format_name: str | None = rows(
        variant(_FORMAT, "trace backward show", choices=tuple(FORMATS)),
        variant(_FORMAT, "explain memory check", choices=("text", "code", "markdown", *DRAWINGS)),
        variant(_FORMAT, "diff", choices=("text", "tree", *DRAWINGS)),
        variant(_FORMAT, "depends", choices=("text", "json", "html")),
        variant("--format FORMAT  Output format of the findings:", "doctor", choices=DIAGNOSES),
    )
    max_size: int = row(
        "--max-size SIZE  Refuse saved reports larger than this, uncompressed.",
        f"backward {READS}",
        default=MAX_SIZE,
        least=1,
        read=read_size,
        without="1GiB",
    )
    quiet: bool = flag(
        "-q, --quiet  Hide progress and notes on stderr; errors are still shown.", EVERY
    )


GROUPS = (Running, Looking, Showing, Writing)
"""The parts of the table, in the order of a person's questions; each is a heading of the help."""


FIRST = {
    "trace": "root call depth all focus format_name output opened",
    "backward": "by root gradient call depth all focus output",
    "explain": "leaf node jacobian root gradient call all output",
    "doctor": "call steps duration keep_going ignore fail_on format_name output",
    "memory": "root call by top all format_name output opened",
    "check": "node every_call root gradient call all output opened",
    "depends": "of on axis root call all output opened",
    "watch": "module code seed every by keep width output",
    "show": "held depth all focus path top format_name output",
    "diff": "root call seed rtol atol top all output",
}
"""The fields of the options that most people want, which the help of a command shows first."""


OPTIONS = tuple(
    Option(name=one.name, kind=one.type, default=one.default, group=group, **variant)
    for group in GROUPS
    for one in fields(group)
    for variant in one.metadata["rows"]
)
"""The table, a row each."""


def options_on(command: str) -> Iterator[Option]:
    """The options of a command, in the order of the table."""
    for one in OPTIONS:
        if command in one.on.split():
            yield one


SETTINGS = {name[2:]: one for one in OPTIONS if one.is_setting for name in one.names}
"""What ``[tool.gradscope]`` may set, by the names of the options."""
