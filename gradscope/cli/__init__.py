"""The command line: options to a session or a saved file, and its result to a renderer.

    entry ─► commands ─► running ─► running.session ─► Report ─► output ─► terminal / file
                └─► options, folder (settings, the last target)

The only rooms that know click.  Nothing here imports torch.

A process begins and ends here: arguments in, exit status out, every error in two lines on stderr.
Click runs without its own error handling, because a program that we ran may have ended with an
interrupt or a click exception of its own, and those are not ours to explain.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

import click

from gradscope.cli.commands import gradscope
from gradscope.cli.given import Result, hint_of, nearest_options, owners
from gradscope.cli.terminal import say, tell_error, tell_misuse
from gradscope.cli.typed_command import OF_THE_PROGRAM
from gradscope.errors import ExitStatus, Fault, GradscopeError
from gradscope.words import joined


def entry() -> NoReturn:
    """The ``gradscope`` command.

    Raises:
        SystemExit: always, except after Ctrl-C in the user's program.
        KeyboardInterrupt: to end as python ends an interrupted program.
    """
    result = run(sys.argv[1:])
    if result.ending is not None and not result.status:
        result.ending.finish()
    raise SystemExit(result.status)


def run(arguments: list[str]) -> Result:
    """Run one command; everything that goes wrong has been said when this returns."""
    ours, program = split(arguments)
    try:
        result = gradscope.main(
            ours or ["--help"],
            prog_name="gradscope",
            standalone_mode=False,
            obj={OF_THE_PROGRAM: tuple(program or ())},
        )
    except GradscopeError as error:
        tell_error(error)
        return Result(status=error.status)
    except click.ClickException as error:
        tell_misuse(error)
        for hint in filter(None, (owner_of(error), hint_of(error))):
            say(hint)
        return Result(status=ExitStatus.USAGE)
    except click.Abort:  # Ctrl-C while no program of the user's was running
        from gradscope.target import Ending

        return Result(ending=Ending(KeyboardInterrupt(), None, {}))
    except BrokenPipeError:
        return _closed_pipe()
    except Exception as error:
        fault = Fault.of(error)
        tell_error(fault)
        return Result(status=fault.status)
    return result if isinstance(result, Result) else Result(status=int(result or 0))


def split(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """Our arguments, and after ``--`` those of the user's program; None if there is no ``--``."""
    if "--" not in arguments:
        return arguments, None
    position = arguments.index("--")
    return arguments[:position], arguments[position + 1 :]


def owner_of(error: click.ClickException, prefix: str = "gradscope") -> str:
    """Which commands have the option that another one was given; "" if that is not what is wrong.

    ``prefix``: how a command is called."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    known = owners(error.ctx)
    meant = nearest_options(error.option_name, known)
    if not meant or error.ctx.command.name in known[meant[0]]:
        return ""
    return f"{meant[0]} is an option of {joined(f'{prefix} {name}' for name in known[meant[0]])}"


def _closed_pipe() -> Result:
    # Whoever read our output (head, less) has seen enough.  Python would complain once more when it
    # flushes stdout at exit, so that goes nowhere.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return Result(status=ExitStatus.OK)
