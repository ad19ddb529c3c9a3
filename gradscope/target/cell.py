"""One cell of an open notebook, or of IPython, as the program.

It runs in the user's own shell, with all that a shell does for a cell, and leaves its variables
there.  Nothing of the interpreter is set for it, and it is never stopped.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from gradscope.errors import TargetError
from gradscope.target.cleaning import clean, without_shell
from gradscope.target.description import Target
from gradscope.target.ending import Shown
from gradscope.target.launch import Launch
from gradscope.target.program import Program


def cell_program(shell: Any, magic: str, source: str) -> Program:
    """The cell below the line of a magic, ready to run.

    Args:
        shell: the shell of IPython that is executing the cell.
        magic: the first line of the cell, which is not a part of the program.
        source: the lines below.

    Raises:
        TargetError: it cannot be run from within a cell.
    """
    if not source.strip():
        raise TargetError("the cell is empty", "put the code to look at below the line of %%")
    if _awaits(shell, source):
        raise TargetError(
            "a cell that awaits cannot run below a magic while an event loop runs, as in Jupyter",
            "record it instead: with gradscope.record() as run: ..., then run.backward(loss)",
        )
    # Lines count as the cell shows them; but only what stands first can be another cell magic.
    is_counted = getattr(shell.compile, "counts_below_magics", False)
    if not is_counted and not source.lstrip().startswith("%%"):
        # Indented as the first line is: by that, IPython shifts them all.
        indent = source[: len(source) - len(source.lstrip())].rpartition("\n")[2]
        source = f"{indent}# {magic}\n{source}"
    # The shell may be counting on already.
    number = getattr(shell.displayhook.exec_result, "execution_count", None)
    number = number or shell.execution_count
    call = partial(_run, shell, number, source)
    ready = Launch(shell.user_module, "", "", call, variables=shell.user_ns)
    return Program(Target("cell", f"In[{number}]"), ready)


def _awaits(shell: Any, source: str) -> bool:
    with suppress(RuntimeError):  # there is no loop
        asyncio.get_running_loop()
        # What cannot be transformed is told as every cell's errors are.
        with suppress(Exception):
            transformed = shell.transform_cell(source)
            return bool(shell.should_run_async(source, transformed_cell=transformed))
    return False


def _run(shell: Any, number: int, source: str) -> object:
    """Run the cell, and let the one with the magic fail as it does.

    Raises:
        Shown: it raised, and the shell has printed the traceback.
    """
    hook = shell.displayhook
    outer = hook.exec_result
    try:
        with _taken_for(shell, number):
            result = shell.run_cell(source)
    finally:
        hook.exec_result = outer
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        return result.result
    if outer is not None:  # so that "run all" stops here
        outer.error_in_exec = error
    raise Shown(without_shell(error, shell))


@contextmanager
def _taken_for(shell: Any, number: int) -> Iterator[None]:
    """While the block runs, the shell takes code for that of this cell, and does not show us in the
    tracebacks that it prints."""
    show, cache = shell.showtraceback, shell.compile.cache

    def numbered(code: str, _: int = 0, raw_code: str | None = None) -> str:
        return str(cache(code, number, raw_code))

    def cleaned(exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        error: Any = (exc_tuple or sys.exc_info())[1]
        if error is not None:
            clean(error)
            exc_tuple = (type(error), error, error.__traceback__)
        show(exc_tuple, *args, **kwargs)

    shell.showtraceback, shell.compile.cache = cleaned, numbered
    try:
        yield
    finally:
        del shell.showtraceback, shell.compile.cache
