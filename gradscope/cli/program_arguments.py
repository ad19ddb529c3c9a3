"""Which words of a command line are the program's: those after TARGET that are no option of ours.

What follows ``--`` is the program's in any case; :mod:`gradscope.cli.entry` has taken it away.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property

import click

from gradscope.errors import TargetError
from gradscope.filesystem import is_file
from gradscope.formats import SAVED
from gradscope.target import Target, TargetKind, parse_target
from gradscope.target.vocabulary import Vocabulary
from gradscope.words import joined

_HINT = "gradscope.hint"
"""Where a context keeps what to do if its command line turns out to be wrong."""

_NEAR = 0.8
"""How alike two options are, from 0 to 1, where one may be a slip of the other."""

_PROGRAMS = ("-m", "-c")
"""Options that name a program."""

_ONE = ("is", "an option of this name")


@dataclass
class Division:
    """The words of a command line, divided: gone through as click would.

    Attributes:
        context: of a command that runs a program.
        last: what stands after ``--``.
        ours: what is for gradscope.
        program: what is for the program, in the order in which it was typed.
        shared: options of ours that the program has as well, each with its value; they are in
            ``ours``.
        unknown: an option that is neither ours nor, as far as can be told, the program's.
        extra: a word that is one too many.
        target: the program, from the word on that names it.
    """

    context: click.Context
    last: tuple[str, ...]
    ours: list[str] = field(default_factory=list)
    program: list[str] = field(default_factory=list)
    shared: list[list[str]] = field(default_factory=list)
    unknown: str | None = None
    extra: str | None = None
    target: Target | None = None

    @cached_property
    def _vocabulary(self) -> Vocabulary | None:
        """What the sources of the program say, as far as they can be read."""
        assert self.target is not None
        source = self.target.text if self.target.kind == "code" else ""
        return Vocabulary.of(self.target, source, in_part=True)

    @property
    def name(self) -> str:
        """The program, as a sentence may call it."""
        if self.target is None or self.target.kind in ("code", "stdin"):
            return "the program"
        return shlex.join([self.target.text])

    @property
    def takes_arguments(self) -> bool:
        """Whether arguments can have any effect, as far as can be told."""
        if self.target is None or self._is_report:
            return False
        return self._vocabulary is None or self._vocabulary.may_read_arguments

    @property
    def _is_report(self) -> bool:
        return self.target is not None and self.target.text.endswith(SAVED)

    def knows(self, option: str) -> bool:
        """Whether the program's sources have this option."""
        return (
            self._vocabulary is not None
            and self._vocabulary.has_option(option)
            and self.takes_arguments
        )

    @property
    def retyped(self) -> str:
        """The command line with all that may be the program's behind ``--``."""
        ours, theirs = list(self.ours), list(self.program)
        extra = [] if self.extra is None else [[self.extra]]
        for words in (*self.shared, *extra):
            at = next(i for i in range(len(ours)) if ours[i : i + len(words)] == words)
            del ours[at : at + len(words)]
            theirs += words
        return f"{self.context.command_path} {shlex.join([*ours, '--', *theirs, *self.last])}"

    @property
    def notes(self) -> Iterator[str]:
        """What the user should know of how this was read."""
        if self.program:
            given = shlex.join(self.program)
            yield f"arguments for {self.name}: {given} (whatever follows -- goes to the program)"
        if self.shared:
            given = joined(shlex.join(words) for words in self.shared)
            verb, what = ("are", "options of these names") if self.shared[1:] else _ONE
            told = f"{given} {verb} read by gradscope, though {self.name} has {what}, too"
            yield f"{told}; for the program: {self.retyped}"

    @property
    def hint(self) -> str:
        """What to do about a word that is nobody's."""
        if self._is_report:
            return f"{self.name} is a saved report, and takes no arguments"
        if self.target is not None and not self.takes_arguments:
            reason = f"{self.name} reads no arguments; to pass some all the same"
        else:
            reason = "arguments for your own program go after `--`"
        return f"{reason}: {self.retyped}"

    @cached_property
    def options(self) -> dict[str, click.Option]:
        """Those of the command."""
        return _options(self.context.command, self.context)

    def read(self, words: list[str]) -> None:
        """Divide the words that follow the command."""
        waiting = list(words)
        while waiting:
            length = self._length(waiting)
            taken, waiting = waiting[: length or 1], waiting[length or 1 :]
            if self.target is None:
                self._before(taken, is_ours=length > 0)
            else:
                self._after(taken, is_ours=length > 0)

    def _length(self, waiting: list[str]) -> int:
        """How many words the option of ours takes that comes first; 0 where none does."""
        name, is_whole, _ = waiting[0].partition("=")
        if name in self.options:
            return 1 if is_whole or self.options[name].is_flag else 2
        if not _is_option(name) or name.startswith("--"):
            return 0
        for at, letter in enumerate(name[1:], 2):
            option = self.options.get(f"-{letter}")
            if option is None:
                return 0
            if not option.is_flag:
                return 1 if waiting[0][at:] else 2
        return 1

    def _before(self, taken: list[str], is_ours: bool) -> None:
        """Words before anything says which program to run."""
        word = taken[0]
        if _is_option(word) and not is_ours:
            self.unknown = self.unknown or word.partition("=")[0]
            self.program += taken
        elif not _is_option(word) and self.unknown and not is_file(word.partition("::")[0]):
            self.program += taken  # most likely the value of that option
        else:
            self.ours += taken
            if any(one.name == "target" for one in self.context.command.params):
                self.target = _target(taken)

    def _after(self, taken: list[str], is_ours: bool) -> None:
        word = taken[0].partition("=")[0]
        own = word[:2] if is_ours and word not in self.options else word
        # -out is no -o where the program has it; -m and -c cannot name a second program.
        is_theirs = word != own and self.knows(word)
        is_theirs |= own in _PROGRAMS and self.takes_arguments
        if is_ours and not is_theirs:
            self.ours += taken
            if self.knows(own):
                self.shared.append(taken)
        elif _is_option(word):
            # One of another command, or a slip of one, is none of theirs.
            is_theirs |= self.knows(word)
            is_ours = bool(nearest_options(word, owners(self.context)))
            if not is_theirs and (is_ours or not self.takes_arguments):
                self.unknown = self.unknown or word
            self.program += taken
        elif self.takes_arguments or self.unknown:
            self.program += taken
        else:
            self.extra = taken[0]
            self.ours += taken  # click refuses it


def divided(context: click.Context, words: list[str], last: tuple[str, ...]) -> Division:
    """What is ours and what is the program's.

    Args:
        context: of a command that runs a program.
        words: what follows the command.
        last: what followed ``--``.

    Raises:
        click.NoSuchOption: an option is neither ours nor, as far as can be told, the program's.
    """
    division = Division(context, last)
    division.read(words)
    if division.unknown is not None:
        context.meta[_HINT] = division.hint
        near = nearest_options(division.unknown, division.options)
        raise click.NoSuchOption(division.unknown, possibilities=near, ctx=context)
    if division.extra is not None:
        context.meta[_HINT] = division.hint
    elif division.shared:  # whose value may not be one for us
        *_, context.meta[_HINT] = division.notes
    return division


def hint_of(error: click.ClickException) -> str:
    """What to do about a command line that was refused, where there is more to say."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    return "" if context is None else str(context.meta.get(_HINT, ""))


def note_forgotten(context: click.Context, words: list[str]) -> None:
    """Keep what to do where a program is given and no command."""
    name = words[0].partition("::")[0]
    if name.endswith((".py", ".ipynb")) or is_file(name):
        line = shlex.join(words)
        context.meta[_HINT] = f"say what to do with it: gradscope backward {line}"


def nearest_options(option: str, known: Iterable[str]) -> list[str]:
    """The options of which this one may be a slip, the most likely first."""
    found = [(_likeness(option, name), name) for name in known]
    return [name for likeness, name in sorted(found, reverse=True) if likeness >= _NEAR]


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


def _likeness(option: str, other: str) -> float:
    a, b = (name.lstrip("-").replace("_", "-") for name in (option, other))
    if min(len(a), len(b)) < 3 or not other.startswith("--"):
        return float(option == other)
    # Two letters that changed places are the commonest slip; in a short word they count much.
    return 1.0 if sorted(a) == sorted(b) else SequenceMatcher(None, a, b).ratio()


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _target(taken: list[str]) -> Target | None:
    """The program that these words name, if they do."""
    word, *value = taken
    try:
        if not _is_option(word):
            return parse_target(word)
        if word[:2] in _PROGRAMS:
            kind: TargetKind = "module" if word[:2] == "-m" else "code"
            return Target(kind, value[0] if value else word[2:])
    except TargetError:
        pass  # what is wrong with it is told when it is to be run
    return None
