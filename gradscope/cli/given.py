"""What was typed: which words of a command line are the program's, namely those after TARGET that
are no option of ours; what commands get of it, and how a command ended, as plain data.

What follows ``--`` is the program's in any case; :func:`gradscope.cli.split` takes it away.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradscope.filesystem import is_file, text_of
from gradscope.formats import SAVED
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


# ---------------------------------------------------------------- whose a word is


_HINT = "gradscope.hint"
"""Where a context keeps what to do if its command line turns out to be wrong; with the name of an
option at the end, if that one does."""

_NEAR = 0.85
"""How alike two options are, from 0 to 1, where one may be a slip of the other."""


def divided(context: click.Context, words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """What is ours of the words that follow a command, what is the program's, and what to tell of
    that.

    Raises:
        click.NoSuchOption: an option is not ours, and may be a slip of one, or comes before the
            program.
    """
    options = _options(context.command, context)
    may_run = any(one.name == "target" for one in context.command.params)
    ours: list[str] = []
    program: list[str] = []
    after: list[str] = []
    named = file = ""
    waiting = list(words)
    while waiting:
        length = _length(waiting, options)
        taken, waiting = waiting[: length or 1], waiting[length or 1 :]
        word = taken[0].partition("=")[0]
        if length:
            ours += taken
            after += [word] if file else []
            if not named and may_run and word[:2] in ("-m", "-c"):
                named = "the program"
        elif _is_option(word) and (not named or nearest_options(word, owners(context))):
            way = f"{context.command_path} … -- {shlex.join(taken)}"
            context.meta[_HINT] = f"arguments for your own program go after `--`: {way}"
            near = nearest_options(word, options)
            raise click.NoSuchOption(word, possibilities=near, ctx=context)
        elif named:
            program += taken
        else:
            ours += taken
            # A saved report takes no arguments, and click refuses them.
            if may_run and not word.endswith(SAVED):
                named, file = shlex.join(taken), word.partition("::")[0]
    told = f"{named}: {shlex.join(program)} (whatever follows -- goes to the program)"
    notes = [f"arguments for {told}"] if program else []
    # Who reads an option writes it in quotes.
    text = text_of(file) if after else ""
    for word in (word for word in after if f'"{word}"' in text or f"'{word}'" in text):
        both = f"{word} is read by gradscope, though {named} names it, too"
        notes.append(f"{both}; for the program it goes after --")
        context.meta[_HINT + word] = notes[-1]
    return ours, program, notes


def _length(waiting: list[str], options: dict[str, click.Option]) -> int:
    """How many words the option of ours takes that comes first; 0 where none does."""
    name, is_whole, _ = waiting[0].partition("=")
    if name in options:
        return 1 if is_whole or options[name].is_flag else 2
    if not _is_option(name) or name.startswith("--"):
        return 0
    for at, letter in enumerate(name[1:], 2):
        option = options.get(f"-{letter}")
        if option is None:
            return 0
        if not option.is_flag:
            return 1 if waiting[0][at:] else 2
    return 1


def hint_of(error: click.ClickException) -> str:
    """What to do about a command line that was refused, where there is more to say."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return ""
    refused = error.param if isinstance(error, click.BadParameter) else None
    wrong = refused.opts if refused is not None else ()
    hints = (context.meta.get(_HINT + name) for name in (*wrong, ""))
    return next(filter(None, hints), "")


def note_forgotten(context: click.Context, words: list[str]) -> None:
    """Keep what to do where a program is given and no command."""
    name = words[0].partition("::")[0]
    if name.endswith((".py", ".ipynb")) or is_file(name):
        line = shlex.join(words)
        context.meta[_HINT] = f"say what to do with it: gradscope backward {line}"


def nearest_options(option: str, known: Iterable[str]) -> list[str]:
    """The options of which this one may be a slip, the most likely first."""
    # Not above: it costs more than all of --help.
    from difflib import get_close_matches

    near = get_close_matches(option, known, cutoff=_NEAR)
    # Two letters that changed places are nearer than one that is missing.
    return sorted(near, key=lambda one: sorted(one) != sorted(option))


def owners(context: click.Context) -> dict[str, list[str]]:
    """Every option of ours, with the names of the commands that have it."""
    found: dict[str, list[str]] = {}
    for name, command in getattr(context.find_root().command, "commands", {}).items():
        for option in _options(command, context):
            found.setdefault(option, []).append(name)
    return found


def _options(command: click.Command, context: click.Context) -> dict[str, click.Option]:
    given = (one for one in command.get_params(context) if isinstance(one, click.Option))
    return {name: option for option in given for name in option.opts}


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"
