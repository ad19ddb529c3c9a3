"""Runs the cells of a notebook in IPython's shell, in this process.

What a cell may hold besides Python (``%magics``, ``!commands``, ``await``) is IPython's to
understand.  Nothing of the user's IPython is read or written: no configuration, no history.
Imported only to run a notebook.
"""

from __future__ import annotations

import ast
import asyncio
import atexit
import builtins
import contextlib
import linecache
import os
import sys
import warnings
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from types import CodeType, FrameType, ModuleType
from typing import Any, NoReturn

from IPython.core.compilerop import CachingCompiler
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets.config import Config

from gradscope.target.cleaning import clean, level_recursion, without_shell
from gradscope.target.ending import Shown, StopProgram, was_stopped
from gradscope.target.notebook import Cell

_CHANGED: tuple[tuple[MutableMapping[str, Any], str], ...] = (
    *((vars(builtins), name) for name in ("__IPYTHON__", "display")),
    *((vars(sys), name) for name in ("ps1", "ps2", "ps3")),
    (os.environ, "MPLBACKEND"),
)
"""What a shell sets in the interpreter for good, and what we set for it."""

_BACKEND = "module://matplotlib_inline.backend_inline"
"""What draws figures in a notebook; others would open a window and wait for it to be closed."""


class _Compiler(CachingCompiler):
    """Code that a magic compiles (``%time``, ``%%capture``) keeps the cell and lines it stands in.

    IPython's own compiler would name it ``<timed exec>``, or after the next cell, and count its
    lines anew.
    """

    _parsed = ""
    counts_below_magics = True

    def cache(self, transformed_code: str, number: int = 0, raw_code: str | None = None) -> str:
        around = self._around()
        if around is not None:
            number, before = around
            # The name is made of the text: the same statement may stand on several lines.
            transformed_code = "\n" * before + transformed_code
        return super().cache(transformed_code, number, raw_code)

    def ast_parse(self, source: str, filename: str = "<unknown>", symbol: str = "exec") -> ast.AST:
        tree = super().ast_parse(source, filename, symbol)
        around = self._around()
        if filename in self._filename_map and around is not None:
            return ast.increment_lineno(tree, around[1])
        self._parsed = source
        return tree

    def __call__(self, source: Any, filename: str, symbol: str, **options: Any) -> CodeType:
        around = self._around()
        if filename.startswith("<timed ") and around is not None:
            filename = self.cache(self._parsed)
            ast.increment_lineno(source, around[1])
        return super().__call__(source, filename, symbol, **options)

    def _around(self) -> tuple[int, int] | None:
        """The number of the cell that is running, and how many of its lines are before what a magic
        in it compiles; None where no cell is running."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename not in self._filename_map:
            frame = frame.f_back
        if frame is None:
            return None
        name, line = frame.f_code.co_filename, frame.f_lineno
        return self._filename_map[name], line - 1 + _before_code(linecache.getline(name, line))


def _before_code(line: str) -> int:
    """How far below this line the code is that the magic in it takes: a line magic takes what
    stands beside it, a cell magic what is below, which IPython compiles from the first line that is
    not empty."""
    try:
        statements = ast.parse(line).body
    except SyntaxError:
        return 0
    match statements:
        case [
            ast.Expr(ast.Call(ast.Attribute(attr="run_cell_magic"), [*_, ast.Constant(str(cell))]))
        ]:
            return 1 + cell[: len(cell) - len(cell.lstrip())].count("\n")
    return 0


class _Shell(InteractiveShell):
    """A shell that writes errors to stderr, and notes when the program is being stopped."""

    compiler_class = _Compiler
    is_stopped = False

    def ask_exit(self) -> NoReturn:
        """What ``exit`` and ``quit`` in a cell do."""
        raise SystemExit

    def enable_gui(self, gui: str | None = None) -> None:
        """What ``%matplotlib`` does besides choosing how to draw: here no window waits."""

    def showtraceback(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        error: Any = (exc_tuple or sys.exc_info())[1]
        if was_stopped(error):
            self.is_stopped = True
        elif not isinstance(error, SystemExit):  # that is told at the end, as python tells it
            clean(error)
            super().showtraceback((type(error), error, error.__traceback__), *args, **kwargs)

    def _showtraceback(self, _etype: Any, _evalue: Any, stb: Any) -> None:
        print(self.InteractiveTB.stb2text(stb), file=sys.stderr)


def run_cells(cells: Sequence[Cell], main: ModuleType, folder: str) -> None:
    """Run cells one after the other in the namespace of ``main``, in a notebook's ``folder``.

    Raises:
        Shown: a cell raised, and its traceback was printed.
        BaseException: what ended the program without one: ``SystemExit``, or that it was stopped.
    """
    level_recursion()
    with ExitStack() as stack:
        stack.enter_context(contextlib.chdir(folder))
        shell = stack.enter_context(_started(main))
        loop = stack.enter_context(_event_loop())
        # Inside a running loop, as in Jupyter: a cell may start a task, and a later one await it.
        ended = loop.run_until_complete(_run_all(shell, cells))
    if ended is not None:
        raise ended


async def _run_all(shell: _Shell, cells: Sequence[Cell]) -> BaseException | None:
    """Run the cells; return what ended them early, which a task would raise with its own frames."""
    for cell in cells:
        result = await _run(shell, cell.source)
        error = result.error_before_exec or result.error_in_exec
        if shell.is_stopped:
            return StopProgram()
        if isinstance(error, SystemExit):
            return error
        if error is not None and not cell.may_raise:
            return Shown(without_shell(error, shell))
    return None


async def _run(shell: _Shell, source: str) -> ExecutionResult:
    """One cell as IPython's own front ends run it."""
    transformed, failure = source, None
    try:
        transformed = shell.transform_cell(source)  # type: ignore[no-untyped-call]
    except Exception:
        failure = sys.exc_info()
    result = await shell.run_cell_async(
        source, store_history=True, transformed_cell=transformed, preprocessing_exc_tuple=failure
    )
    shell.events.trigger("post_execute")
    shell.events.trigger("post_run_cell", result)
    return result


@contextmanager
def _started(main: ModuleType) -> Iterator[_Shell]:
    """A shell for the program, which finds it by ``get_ipython()``; afterwards there is none."""
    config = Config()
    config.HistoryManager.enabled = False
    is_plain = bool(os.environ.get("NO_COLOR")) or not sys.stderr.isatty()
    config.InteractiveShell.colors = "nocolor" if is_plain else "neutral"
    with _put_back(), TemporaryDirectory(prefix="gradscope-") as folder:
        os.environ.setdefault("MPLBACKEND", _BACKEND)
        shell = _Shell.instance(config=config, ipython_dir=folder, user_module=main)
        warnings.filterwarnings("ignore", "To exit: use", UserWarning)
        try:
            yield shell
        finally:
            atexit.unregister(shell.atexit_operations)
            _Shell.clear_instance()


@contextmanager
def _put_back() -> Iterator[None]:
    """After the block all of :data:`_CHANGED` is as before."""
    before = [owner.get(name) for owner, name in _CHANGED]
    try:
        yield
    finally:
        for (owner, name), value in zip(_CHANGED, before, strict=True):
            owner.pop(name, None)
            if value is not None:
                owner[name] = value


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    # Not asyncio.Runner, which would keep Ctrl-C from a cell until the cell awaits something.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()
