"""The commands: names, help, and which room does the work."""

from __future__ import annotations

import inspect
from dataclasses import replace

import click

from gradscope.analyses.check.request import Check
from gradscope.analyses.explain.request import Explain
from gradscope.analyses.memory.request import MemoryStudy
from gradscope.cli import completion
from gradscope.cli.options import (
    CALL,
    DiffOptions,
    DoctorOptions,
    TargetOptions,
    WatchOptions,
    check_options,
    derivative_option,
    diff_options,
    doctor_options,
    explain_options,
    flow_options,
    gradient_option,
    look_options,
    max_size_option,
    memory_options,
    program_options,
    start_options,
    target_options,
    watch_options,
)
from gradscope.cli.output_options import (
    OutputOptions,
    flag,
    number,
    output_options,
    rank_option,
    saved_option,
    study_output_options,
    values_option,
)
from gradscope.cli.result import Result
from gradscope.cli.typed_command import TypedCommand, TypedGroup
from gradscope.errors import TargetError
from gradscope.filesystem import cache_folder
from gradscope.formats import FORMATS
from gradscope.model.request import Request
from gradscope.version import VERSION
from gradscope.words import SIGNS

EXIT_STATUSES = """
\b
Exit status: 0 fine; 1 the program failed, or the status it chose; 2 wrong usage;
3 a tool is missing; 4 a fault of gradscope itself.
"""

ENVIRONMENT = """
\b
Environment variables:
  NO_COLOR               no colours
  COLUMNS                columns of text that goes into a pipe
  PAGER                  the pager for long help and rules; cat: no pager
  GRADSCOPE_DOT          the program dot of Graphviz, where it is not on PATH
  GRADSCOPE_TRACEBACK=1  an internal error shows its traceback
  XDG_CACHE_HOME         where each folder's last program and numbers are kept
Project settings are in pyproject.toml, under [tool.gradscope]: ignore, fail-on,
width, color and precision.
"""

FINDING_STATUSES = """
\b
Exit status: 0 nothing found; 1 findings, or the program failed, or the status it chose;
2 wrong usage; 3 a tool is missing; 4 a fault of gradscope itself.
"""

DIFFERENCE_STATUSES = """
\b
Exit status: 0 equal within the tolerance; 1 different; 2 wrong usage, or no graph;
3 a tool is missing; 4 a fault of gradscope itself.
"""

TARGETS = """
\b
TARGET is one of
  script.py              run as python would run it
  script.py::function    call it without arguments, and watch only that call
  notebook.ipynb         its cells of code in order, as Jupyter would run them
  -m MODULE              a module
  -c CODE                a piece of code, e.g. -c 'log(x)' --let 'x=[1,2]'
  -                      a program on stdin
and without it the program run last in this directory.  What follows TARGET
and is no option of gradscope goes to the program, as does all after --.
"""


LEGEND = "\n".join(("\b", "Signs:", *(f"  {sign}  {meaning}" for sign, meaning in SIGNS.values())))

QUESTIONS = ("status", "findings", "explain", *FORMATS, "next", "stop")

EXAMPLES = {
    "trace": ("train.py", "train.py -o graph.html --open"),
    "backward": ("train.py --call 2", '-c "x * x" --let "x=[1,2]" --gradient "[1, 0.1]"'),
    "explain": ("train.py --leaf w", '-c "(x * x).sum()" --let "x=[1,2]"'),
    "doctor": ("train.py -- --epochs 2", "train.py --steps 20 --format github"),
    "ask": ("explain --leaf w", "tree --focus blocks.3"),
    "memory": ("train.py --by module", "train.py --top 5 -o memory.html"),
    "check": ("train.py", "train.py --every-call --format json"),
    "watch": ("train.py", "train.py --every 100 -o run.jsonl"),
    "show": ("saved.json --depth 2", "saved.json -o graph.svg"),
    "diff": ("old.json new.json", '"train.py" "train.py -- --lr 0.1" --top 5'),
    "rule": ("GS303", "nan"),
}
"""Two of each command, the plainest first, by what follows its name."""


@click.group(
    cls=TypedGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 90},
    epilog=f"{EXIT_STATUSES}{ENVIRONMENT}",
)
@click.version_option(VERSION, prog_name="gradscope")
@flag("--no-pager", help="Never show help and rules in a pager.")
@click.pass_context
def gradscope(context: click.Context, no_pager: bool) -> None:
    """See where the gradients of a PyTorch program go.

    gradscope runs your program unchanged and shows every node that backward walks by the
    expression and line you wrote, and the gradient that flows along every edge.
    """
    from gradscope.cli import settings
    from gradscope.cli.documents import NO_PAGER

    context.meta[NO_PAGER] = no_pager
    context.default_map = settings.defaults(gradscope)


@gradscope.command(epilog=EXIT_STATUSES)
@target_options
@look_options
@output_options
def trace(target: TargetOptions, request: Request, output: OutputOptions) -> Result:
    """Show the graph that backward would walk.

    Runs the program up to its first backward call, or to its end if it makes none.
    """
    from gradscope.cli.running import run_command

    return run_command(target, request, output)


@gradscope.command(epilog=EXIT_STATUSES)
@target_options
@gradient_option
@look_options
@flow_options
@rank_option
@output_options
def backward(target: TargetOptions, request: Request, output: OutputOptions) -> Result:
    """Show the graph with the gradient on every edge.

    Watches the program's own backward call, with --steps several; -o FILE.html switches between
    them, also where they walk different graphs.  With --gradient or --root, sends a gradient of
    your choice through the graph instead, and leaves the program's .grad alone.
    """
    from gradscope.cli.running import run_command

    return run_command(target, replace(request, gradients=True), output)


@gradscope.command(epilog=EXIT_STATUSES)
@target_options
@gradient_option
@explain_options
@start_options
@derivative_option
@max_size_option
@study_output_options
def explain(
    target: TargetOptions, asked: Explain, request: Request, output: OutputOptions
) -> Result:
    """Follow the chain rule in numbers, from the root to a leaf.

    For every step the derivative of the operation, upstream times local, and every sum; for
    every leaf the paths to it; and what the numbers of --gradient are the weights of.  TARGET
    may also be a saved explanation, FILE.json.
    """
    from gradscope.cli.running import run_command

    if asked.leaf is not None and asked.node is not None:
        raise TargetError("--leaf and --node given at once", "ask for one of them")
    asked = replace(asked, everything=output.all, cache=str(cache_folder()))
    request = replace(request, gradients=True, study=asked)
    return run_command(target, request, output, "explain")


@gradscope.command(epilog=FINDING_STATUSES)
@target_options
@max_size_option
@doctor_options
def doctor(target: TargetOptions, options: DoctorOptions) -> Result:
    """Say what is wrong with the gradients, and on which line.

    Runs the program, watches its backward calls, and tells what it found: the line, the
    evidence, why, and what to do.  TARGET may also be a saved report, FILE.json.
    """
    from gradscope.cli.doctor import run_doctor

    return run_doctor(target, options)


@gradscope.command(epilog=FINDING_STATUSES, context_settings={"allow_interspersed_args": False})
@number(
    "process",
    "--pid",
    least=1,
    help="Ask this process.  [default: the last that began to wait in this folder]",
)
@click.argument("question", metavar="[QUESTION]", default="status", type=click.Choice(QUESTIONS))
@click.argument("words", metavar="[ITS_OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
def ask(question: str, words: tuple[str, ...], process: int | None) -> Result:
    """Ask a run that waits: of gradscope doctor or watch --hold.

    \b
    QUESTION is one of
      status                 which run waits, where, and at which findings
      findings               as gradscope doctor FILE.json tells them
      explain                as gradscope explain FILE.json does: --leaf, --all
      tree, table, ...       as gradscope show FILE.json draws it, in any of its formats
      next                   let it go on, and wait until it waits again; 1 where it ends
      stop                   end the program as Ctrl-C does, and wait for that
    and takes the options of that command.  Does not import torch.
    """
    from gradscope.cli.holding import ask as asked

    return asked(question, words, process)


@gradscope.command(epilog=EXIT_STATUSES)
@target_options
@memory_options
@max_size_option
@study_output_options
def memory(target: TargetOptions, request: Request, output: OutputOptions) -> Result:
    """Show what autograd keeps alive for backward, by line, module, op and dtype.

    Runs the program up to its first backward call and counts the memory of all saved tensors,
    each storage once.  TARGET may also be a saved answer, FILE.json.
    """
    from gradscope.cli.running import run_command

    request = replace(request, study=MemoryStudy())
    return run_command(target, request, output, "memory")


CHECK_STATUSES = """
\b
Exit status: 0 no derivative is wrong; 1 one is, or the program failed, or the status it chose;
2 wrong usage; 3 a tool is missing; 4 a fault of gradscope itself.
"""


@gradscope.command(epilog=CHECK_STATUSES)
@target_options
@check_options
@gradient_option
@start_options
@max_size_option
@study_output_options
def check(target: TargetOptions, asked: Check, request: Request, output: OutputOptions) -> Result:
    """Compare every derivative with finite differences.

    Runs the calls behind the graph again in float64, each alone, and compares what backward gives
    with differences of forward; then the gradients of all leaves with differences of the whole
    program. Custom Functions are checked call by call, built-in operations once a line of the
    program.  TARGET may also be a saved report, FILE.json.
    """
    from gradscope.cli.running import run_command

    request = replace(request, gradients=True, study=asked)
    return run_command(
        target,
        request,
        output,
        "check",
        lambda report: bool(report.checks and report.checks.is_wrong),
    )


@gradscope.command(epilog=EXIT_STATUSES)
@program_options
@watch_options
def watch(target: TargetOptions, options: WatchOptions) -> Result:
    """Watch the gradients of a training for as long as it runs.

    Runs the program to its end and shows the norms of each part of its models, step by step: on a
    terminal below what the program writes, elsewhere a line for each row.
    """
    from gradscope.cli.watch import run_watch

    return run_watch(target, options)


for _command in (trace, backward, explain, doctor, memory, check, watch):
    _command.help = f"{inspect.cleandoc(_command.help or '')}\n{TARGETS}"
for _command in (trace, backward, explain):
    _command.help = f"{_command.help}\n{LEGEND}\n"


@gradscope.command(epilog=EXIT_STATUSES)
@click.argument("file", metavar="FILE.json", shell_complete=completion.reports)
@values_option
@saved_option
@number("held", "--call", least=0, help=CALL)
@rank_option
@max_size_option
@output_options
def show(file: str, max_size: int, output: OutputOptions) -> Result:
    """Draw a saved report again, or a training that was watched.

    FILE is what -o FILE.json, -o FILE.json.gz or watch -o FILE.jsonl wrote.  Does not import torch.
    """
    from gradscope import doing
    from gradscope.cli import progress
    from gradscope.cli.output import Output
    from gradscope.model import history, storage

    if history.is_log(file):
        from gradscope.cli.watch import show_log

        return show_log(file, max_size, output)
    place = Output.of(output)
    with progress.shown(place.quiet), doing.during("reading the file"):
        place.write(storage.load(file, max_size))
    return Result()


class _Sides(TypedCommand):
    """A command whose arguments are command lines, which may begin with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show click a leading blank, which a command line may have."""
        lines = (f" {arg}" if arg.startswith("-") and " " in arg else arg for arg in args)
        return super().parse_args(ctx, list(lines))


@gradscope.command(cls=_Sides, epilog=DIFFERENCE_STATUSES)
@diff_options
@max_size_option
@study_output_options
def diff(options: DiffOptions, output: OutputOptions) -> Result:
    """Compare two programs or saved reports: their graphs, leaves and gradients.

    \b
    A and B are each
      FILE.json              a saved report
      anything else          what you would write after `gradscope backward`,
                             in quotes: "train.py --call 2", "-m pkg.train",
                             "train.py -- --lr 0.1"
    --call, --root and the like hold for both, unless one says otherwise; so do arguments for the
    programs after -- at the end.

    Each program runs in a process of its own.  Nodes are matched by module, expression and
    place in the graph.  What the programs print goes to stderr.
    """
    from gradscope.cli.diff import run_diff

    return run_diff(options, output)


@gradscope.command(epilog="Without WORD: all rules, one sentence each.")
@click.argument("words", metavar="[WORD]...", nargs=-1, shell_complete=completion.rules)
def rule(words: tuple[str, ...]) -> Result:
    """Explain a rule of the doctor: what it means, how it is recognised, what to do.

    WORD is a rule's code or name, such as GS303 or history-cut.  Any other words list the
    rules that have them all: gradscope rule nan, gradscope rule loss nan.
    """
    from gradscope.cli import documents
    from gradscope.cli.rules import explain

    documents.show(explain(words))
    return Result()


@gradscope.command("help")
@click.argument("command", metavar="[COMMAND]", required=False, shell_complete=completion.commands)
def help_command(command: str | None) -> Result:
    """Show the help of a command, as COMMAND --help does."""
    from gradscope.cli import documents

    root = click.get_current_context().find_root()
    shown = root
    if command is not None:
        _, known, _ = gradscope.resolve_command(root, [command])
        shown = click.Context(known or gradscope, info_name=command, parent=root)
    documents.show(shown.get_help() + "\n")
    return Result()


for _name, _examples in EXAMPLES.items():
    _lines = "".join(f"  gradscope {_name} {words}\n" for words in _examples)
    _known = gradscope.commands[_name]
    _known.epilog = f"\b\nExamples:\n{_lines}\n{inspect.cleandoc(_known.epilog or '')}"
