"""The command line above a cell: ``%%gradscope [COMMAND] [OPTIONS]``, with the cell as the program.

Must not know IPython: the program and what displays a graph are handed in.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from gradscope.cli import owner_of, split
from gradscope.cli.commands import gradscope
from gradscope.cli.terminal import say
from gradscope.cli.typed_command import OF_THE_PROGRAM
from gradscope.errors import Fault, GradscopeError, TargetError
from gradscope.target import Program
from gradscope.words import joined

if TYPE_CHECKING:
    from gradscope.model.report import Report
    from gradscope.render.options import Options

NAME = "%%gradscope"

_COMMANDS = ("trace", "backward", "explain", "doctor", "memory", "check", "depends")
_OF_THE_GROUP = ("-h", "--help", "--version")


def run_cell(
    line: str, program: Program, display: Callable[[Report, Options], None] | None = None
) -> None:
    """Run a cell under the command that stands above it.

    Without a command, ``backward`` that makes do with the graph where a gradient would be needed.

    Args:
        line: what stands behind the name of the magic.
        program: the cell.
        display: what shows a graph where a notebook can draw it; otherwise it is printed.

    Raises:
        GradscopeError: the line is no command for a cell, or it was not run for another reason.
        KeyboardInterrupt: while no program ran.
    """
    words, arguments = _words(line)
    # A block, or the command line, may record already; there is one recorder at a time.
    room = sys.modules.get("gradscope.recording.recorder")
    if room is not None and room.Recorder.active is not None:
        say("this cell is being recorded already, so it is only run, not examined again")
        program.run()
        return
    given: dict[str, Any] = {
        OF_THE_PROGRAM: tuple(arguments or ()),
        "cell": program,
        "display": display,
    }
    if not words or (words[0].startswith("-") and words[0] not in _OF_THE_GROUP):
        words, given["or_graph"] = ["backward", *words], True
    elif not words[0].startswith("-") and words[0] in gradscope.commands.keys() - {*_COMMANDS}:
        raise TargetError(
            f"{NAME} {words[0]}: this command cannot run a cell",
            f"use {joined(_COMMANDS)}, or !gradscope {words[0]}",
        )
    try:
        gradscope.main(words, prog_name=NAME, standalone_mode=False, obj=given)
    except click.ClickException as error:
        raise TargetError(" ".join(error.format_message().split()), owner_of(error, NAME)) from None
    except click.Abort:
        raise KeyboardInterrupt from None
    except GradscopeError:
        raise
    except Exception as error:
        raise Fault.of(error) from None


def _words(line: str) -> tuple[list[str], list[str] | None]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise TargetError(f"{NAME} {line}: {error}", "close the quotation mark") from None
    return split(words)
