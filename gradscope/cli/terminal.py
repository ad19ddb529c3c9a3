"""What the terminal, or whatever stdout is instead, can take; what is said on stderr: errors in two
lines, remarks in one, each marked as ours; and texts of our own that are read rather than looked
at, pages of rules and help, in a pager where they are longer than the screen.

Who waits at a terminal is told now and then what is done, in a line on stderr that stays there.
Nothing of the program's is touched for it: no line is taken back, no stream covered, no thread
started.  So nothing can be told while nothing of ours runs.

What is foreign goes through :mod:`gradscope.render.output`.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator

# By name, so that a program may put another clock into the module.
from time import monotonic
from typing import TYPE_CHECKING, TextIO

import click

from gradscope import doing
from gradscope.errors import GradscopeError
from gradscope.escaping import for_terminal, visible
from gradscope.ranks import Job

if TYPE_CHECKING:
    from gradscope.model.observations import Step
    from gradscope.target import Target

PIPED_WIDTH = 100
"""Columns of a tree that goes into a pipe or a file, unless COLUMNS says otherwise."""


WIDEST = 10_000
"""Columns beyond which nobody reads, and lines fill the memory."""


def width(to_stdout: bool = True) -> int:
    """Columns for the tree: COLUMNS, else the terminal's, else :data:`PIPED_WIDTH`, as in files."""
    known = is_terminal() or os.environ.get("COLUMNS", "").isdigit()
    if not (to_stdout and known):
        return PIPED_WIDTH
    return min(shutil.get_terminal_size((PIPED_WIDTH, 40)).columns, WIDEST)


def chosen_width(columns: int | None, to_stdout: bool = True) -> int:
    """The columns that were asked for, else those there are."""
    return min(columns, WIDEST) if columns else width(to_stdout)


def is_terminal() -> bool:
    """Whether a person reads stdout; it may also be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def is_notebook() -> bool:
    """Whether a notebook shows stdout, which it does in colours."""
    return type(sys.stdout).__module__.startswith("ipykernel.")


def is_read() -> bool:
    return is_terminal() or is_notebook()


def color(choice: str) -> bool:
    """Whether to colour: as chosen, else where a person reads and does not refuse it."""
    if choice != "auto":
        return choice == "always"
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return is_read() and not refused


def has_unicode() -> bool:
    """Whether stdout can hold box drawing."""
    try:
        "├─○‖█".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError, AttributeError):
        return False
    return True


def flush() -> None:
    """Send what waits in the buffers on its way: the process is about to end by a signal."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(ValueError, OSError):
                stream.flush()


@contextlib.contextmanager
def stdout_reserved(reserve: bool) -> Iterator[None]:
    """While the block runs, send what anyone writes to stdout to stderr instead.

    On the level of file descriptors, so that child processes and C code are covered too.  Used when
    our own result on stdout has to stay readable for a machine.
    """
    if not reserve:
        yield
        return
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError, OSError):  # the program may have closed its stdout
            sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)


def tell_error(error: GradscopeError) -> None:
    """What happened, then what to do next."""
    for line in (error.what, *error.hints):
        say(line)


def tell_misuse(error: click.ClickException) -> None:
    """What click says of options that it does not understand, with the usage above it."""
    said = io.StringIO()
    error.show(said)
    # The message quotes arguments, which must not begin lines; the usage has lines of its own.
    text = said.getvalue().replace(error.message or "\n", visible(error.message) or "\n")
    click.echo(for_terminal(text), err=True, nl=False)


def tell_unbound(target: Target, error: BaseException | None) -> None:
    """How to bind a name that a piece of code lacks."""
    name = error.name if isinstance(error, NameError) else None
    if target.kind == "code" and name:
        say(f"--let '{name}=[1,2]' makes {name} a leaf with these numbers")


def say(line: str, stream: TextIO | None = None) -> None:
    """A line with our name before it, so that nobody takes it for the program's own; to this
    stream, or to what stderr is now."""
    if is_notebook():  # where a stream is shown as soon as it is flushed
        flush()
    if not getattr(stream or sys.stderr, "closed", False):  # by the program, which goes on
        # It may have closed what lies below as well: then nobody hears it.
        with contextlib.suppress(OSError):
            click.echo(f"gradscope: {visible(line)}", file=stream, err=True)


_LESS = "FRX"
"""As git starts ``less``: with colours, and not at all for what fits the screen."""


def show(text: str) -> None:
    """Write a text to stdout; through a pager where a person reads, and it is longer than the
    screen.

    Raises:
        OutputError: stdout is closed.
    """
    if not _is_paged(text):
        # Not above: it costs more than all of --help.
        from gradscope.render import output

        output.write(output.STDOUT, text)


def show_help(context: click.Context) -> None:
    text = context.get_help() + "\n"
    if not _is_paged(text):
        click.echo(text, nl=False)


def _is_paged(text: str) -> bool:
    """Whether a text has been shown in a pager."""
    typed = sys.stdin is not None and sys.stdin.isatty()
    if not (typed and is_terminal()) or len(text.splitlines()) < shutil.get_terminal_size().lines:
        return False
    os.environ.setdefault("LESS", _LESS)
    click.echo_via_pager(text, color=color("auto"))
    return True


PAUSE = 10.0
"""Seconds from the beginning to the first line, and from one to the next."""


def _telling(stream: TextIO) -> Callable[[str], None]:
    """Writes what is done on a terminal, at most so often."""
    # The program may put another stream in its place, and read that.
    last = monotonic()

    def tell(words: str) -> None:
        nonlocal last
        now = monotonic()
        if now - last >= PAUSE:
            last = now
            say(words, stream)

    return tell


@contextlib.contextmanager
def shown(quiet: bool) -> Iterator[bool]:
    """Tell what is done while the block runs, and whether anybody is told.

    Nobody is where that is not wanted, where stderr is no terminal, and where several ranks write
    on it.
    """
    stream = sys.stderr
    if quiet or stream is None or not stream.isatty() or Job.of() is not None:
        yield False
        return
    with doing.heard_by(_telling(stream)):
        yield True


def tell_step(step: Step) -> None:
    """``step 3, loss 0.1302, gradient norm 0.966``: the doctor has watched a call."""
    facts = [f"step {step.number:,}"]
    facts += [f"loss {float(step.loss):.4g}"] if step.loss is not None else []
    facts += [f"gradient norm {float(step.norm):.3g}"] if step.norm is not None else []
    doing.begin(", ".join(facts))
