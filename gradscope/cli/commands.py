"""The commands: names, help, and which room does the work."""

from __future__ import annotations

import inspect
from typing import Any

import click

from gradscope.cli import terminal
from gradscope.cli.given import Given, Result
from gradscope.cli.typed_command import TypedCommand, TypedGroup
from gradscope.errors import TargetError
from gradscope.formats import SAVED
from gradscope.model.request import (
    Check,
    DependsStudy,
    Explain,
    MemoryStudy,
    SplitStudy,
)
from gradscope.options import SETTINGS
from gradscope.words import SIGNS, VERSION, joined

_FAILED = "the program failed, or the status it chose; 2 wrong usage;"
_OURS = "3 a tool is missing; 4 a fault of gradscope itself."
EXIT_STATUSES = f"Exit status: 0 fine; 1 {_FAILED} {_OURS}"
FINDING_STATUSES = f"Exit status: 0 nothing found; 1 findings, or {_FAILED} {_OURS}"
CHECK_STATUSES = f"Exit status: 0 no derivative is wrong; 1 one is, or {_FAILED} {_OURS}"
DIFFERENCE_STATUSES = (
    f"Exit status: 0 equal within the tolerance; 1 different; 2 wrong usage, or no graph; {_OURS}"
)

ENVIRONMENT = f"""
\b
Environment variables:
  NO_COLOR               no colours
  COLUMNS                columns of text that goes into a pipe
  PAGER                  the pager for long help and rules; cat: no pager
  GRADSCOPE_DOT          the program dot of Graphviz, where it is not on PATH
  GRADSCOPE_TRACEBACK=1  an internal error shows its traceback
  XDG_CACHE_HOME         where each folder's last program is kept

Project settings are in pyproject.toml, under [tool.gradscope]: {joined(SETTINGS)}.
"""

TARGETS = """
\b
TARGET is one of
  script.py              run as python would run it
  script.py::function    call it without arguments, and watch only that call
  'script.py::f(0, 2)'   call it with these arguments
  notebook.ipynb         its cells of code in order, as Jupyter would run them
  -m MODULE              a module
  -c CODE                a piece of code, e.g. -c 'log(x)' --let 'x=[1,2]'
  -                      a program on stdin

Without TARGET, the program run last in this directory.  What follows TARGET and is no option of
gradscope goes to the program, as does all after --.
"""


LEGEND = "\n".join(("\b", "Signs:", *(f"  {sign}  {meaning}" for sign, meaning in SIGNS.values())))


@click.group(
    cls=TypedGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 90},
    epilog=f"{EXIT_STATUSES}\n{ENVIRONMENT}",
)
@click.version_option(VERSION, prog_name="gradscope")
@click.pass_context
def gradscope(context: click.Context) -> None:
    """See where the gradients of a PyTorch program go.

    gradscope runs your program unchanged and shows every node that backward walks by the
    expression and line you wrote, and the gradient that flows along every edge.
    """
    from gradscope.cli import folder

    context.default_map = folder.defaults()


def _run(given: Given, *args: Any, **more: Any) -> Result:
    from gradscope.cli.running import run_command

    return run_command(given, *args, **more)


@gradscope.command(
    examples=("train.py", "train.py -o graph.html --open"),
    epilog=f"{LEGEND}\n\n{EXIT_STATUSES}",
)
def trace(given: Given) -> Result:
    """Show the graph that backward would walk.

    Runs the program up to its first backward call, or to its end if it makes none.
    """
    return _run(given, gradients=False)


@gradscope.command(
    examples=("train.py --call 2", '-c "x * x" --let "x=[1,2]" --gradient "[1, 0.1]"'),
    epilog=f"{LEGEND}\n\n{EXIT_STATUSES}",
)
def backward(given: Given) -> Result:
    """Show the graph with the gradient on every edge.

    Watches the program's own backward call, with --steps several; -o FILE.html switches between
    them, also where they walk different graphs.  With --gradient or --root, sends a gradient of
    your choice through the graph instead, and leaves the program's .grad alone.  --by takes the
    gradient apart, and tells what each piece of it brings: which term of a loss moves what.
    With it, TARGET may also be a saved answer, FILE.json.
    """
    if given.by is None:
        return _run(given)
    if (given.steps or 1) > 1:
        raise TargetError(
            "--by takes the gradient of one backward call apart, and --steps watches several",
            "choose the call with --call N",
        )
    asked = SplitStudy.of(given.by)
    return _run(given, "terms" if asked.kind == "term" else "split", asked)


@gradscope.command(
    examples=("train.py --leaf w", '-c "(x * x).sum()" --let "x=[1,2]"'),
    epilog=f"{LEGEND}\n\n{EXIT_STATUSES}",
)
def explain(given: Given) -> Result:
    """Follow the chain rule in numbers, from the root to a leaf.

    For every step the derivative of the operation, upstream times local, and every sum; for
    every leaf the paths to it; and what the numbers of --gradient are the weights of.  TARGET
    may also be a saved explanation, FILE.json.
    """
    if given.leaf is not None and given.node is not None:
        raise TargetError("--leaf and --node given at once", "ask for one of them")
    return _run(given, "explain", given.part(Explain, everything=given.all))


@gradscope.command(
    examples=("train.py -- --epochs 2", "train.py --steps 20 --format github"),
    epilog=FINDING_STATUSES,
)
def doctor(given: Given) -> Result:
    """Say what is wrong with the gradients, and on which line.

    Runs the program, watches its backward calls, and tells what it found: the line, the
    evidence, why, and what to do.  TARGET may also be a saved report, FILE.json.
    """
    from gradscope.cli.doctor import run_doctor

    return run_doctor(given)


@gradscope.command(
    examples=("train.py --by module", "train.py --top 5 -o memory.html"), epilog=EXIT_STATUSES
)
def memory(given: Given) -> Result:
    """Show what autograd keeps alive for backward, by line, module, op and dtype.

    Runs the program up to its first backward call and counts the memory of all saved tensors,
    each storage once.  TARGET may also be a saved answer, FILE.json.
    """
    return _run(given, "memory", MemoryStudy(), gradients=False)


@gradscope.command(
    examples=("train.py", "train.py --every-call --format json"),
    epilog=CHECK_STATUSES,
)
def check(given: Given) -> Result:
    """Compare every derivative with finite differences.

    Runs the calls behind the graph again in float64, each alone, and compares what backward gives
    with differences of forward; then the gradients of all leaves with differences of the whole
    program, in which what has no history, as after detach() or item(), is held fixed. Custom
    Functions are checked call by call, built-in operations once a line of the program. TARGET may
    also be a saved report, FILE.json.
    """
    return _run(
        given,
        "check",
        Check(node=given.node, everything=given.every_call),
        is_bad=lambda report: bool(report.checks and report.checks.is_wrong),
    )


@gradscope.command(
    examples=("train.py --of logits --on x", "train.py --of logits --on emb --axis 1"),
    epilog=EXIT_STATUSES,
)
def depends(given: Given) -> Result:
    """Show which elements of one tensor depend on which of another.

    Sends a gradient from each index of the one, along an axis, and tells at which indices of the
    other it arrives: whether samples mix, whether a causal mask holds, whether padding gets a
    gradient; and at which line the gradient of one index first comes to others.  TARGET may also be
    a saved answer, FILE.json.
    """
    if given.on is None and not (given.target or "").endswith(SAVED):
        raise TargetError("depends needs a tensor that another may depend on", "name it: --on NAME")
    asked = given.part(DependsStudy, on=given.on or "", axis=given.axis or ())
    return _run(given, "depends", asked, gradients=False)


@gradscope.command(examples=("train.py", "train.py --every 100 -o run.jsonl"), epilog=EXIT_STATUSES)
def watch(given: Given) -> Result:
    """Watch the gradients of a training for as long as it runs.

    Runs the program to its end and shows the norms of each part of its models, step by step: a
    line for each row, on a terminal one in ten seconds, and the whole at the end.
    """
    from gradscope.cli.watch import run_watch

    return run_watch(given)


for _command in (trace, backward, explain, doctor, memory, check, depends, watch):
    _command.help = f"{inspect.cleandoc(_command.help or '')}\n{TARGETS}"


@gradscope.command(
    examples=("saved.json --depth 2", "saved.json -o graph.svg"), epilog=EXIT_STATUSES
)
def show(given: Given) -> Result:
    """Draw a saved report again, or a training that was watched.

    FILE is what -o FILE.json, -o FILE.json.gz or watch -o FILE.jsonl wrote.  Does not import torch.
    """
    from gradscope import doing
    from gradscope.cli.output import Output
    from gradscope.model import history, storage

    if history.is_log(given.file):
        from gradscope.cli.watch import show_log

        return show_log(given)
    place = Output.of(given)
    with terminal.shown(place.quiet):
        doing.begin("reading the file")
        place.write(storage.load(given.file, given.max_size))
    return Result()


class _Sides(TypedCommand):
    """A command whose arguments are command lines, which may begin with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show click a leading blank, which a command line may have."""
        lines = (f" {arg}" if arg.startswith("-") and " " in arg else arg for arg in args)
        return super().parse_args(ctx, list(lines))


@gradscope.command(
    cls=_Sides,
    examples=("old.json new.json", '"train.py" "train.py -- --lr 0.1" --top 5'),
    epilog=DIFFERENCE_STATUSES,
)
def diff(given: Given) -> Result:
    """Compare two programs or saved reports: their graphs, leaves and gradients.

    \b
    A and B are each
      FILE.json              a saved report
      anything else          what you would write after `gradscope backward`,
                             in quotes: "train.py --call 2", "-m pkg.train",
                             "train.py -- --lr 0.1"

    What is said of the run, such as --call and --root, holds for both, unless one of them says
    otherwise; so do arguments for the programs after -- at the end.

    Each program runs in a process of its own.  Nodes are matched by module, expression and
    place in the graph.  What the programs print goes to stderr.
    """
    from gradscope.cli.diff import run_diff

    return run_diff(given)


@gradscope.command(examples=("GS303", "nan"), epilog="Without WORD: all rules, one sentence each.")
@click.argument("words", metavar="[WORD]...", nargs=-1)
def rule(words: tuple[str, ...]) -> Result:
    """Explain a rule of the doctor: what it means, how it is recognised, what to do.

    WORD is a rule's code or name, such as GS303 or history-cut.  Any other words list the
    rules that have them all: gradscope rule nan, gradscope rule loss nan.
    """
    from gradscope.cli.rules import explain, fitted

    text, width = explain(words), min(terminal.width(), terminal.PIPED_WIDTH)
    terminal.show(fitted(text, width) if terminal.is_terminal() else text)
    return Result()
