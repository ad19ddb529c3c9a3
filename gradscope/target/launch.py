"""What python sets up for each kind of program, and the call that runs it; compiling and executing
source as python does, with as much room for recursion.

One function per kind of target gives a :class:`Launch`: the ``__main__`` module, ``sys.argv[0]``,
``sys.path[0]`` and what to execute.  Nothing of the interpreter is changed here.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import importlib.util
import linecache
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.machinery import BuiltinImporter, SourceFileLoader
from pathlib import Path, PurePath
from types import CodeType, ModuleType
from typing import Any

from gradscope.errors import TargetError, ToolMissing
from gradscope.filesystem import here
from gradscope.target.cleaning import level_recursion
from gradscope.target.description import FunctionCall, Target, missing_file_hint

_JSON = {".json", ".jsonl", ".ndjson"}
_DATA = {
    *_JSON,
    *(".yaml", ".yml", ".toml", ".csv", ".md", ".html", ".svg", ".png", ".pdf", ".dot"),
    *(".npy", ".npz", ".pt", ".pth", ".safetensors"),
}
"""How the names of data end, which is no program although some of it is valid python."""

_HEAD = 4_096
"""Bytes of a saved report in which it names its format."""


@dataclass
class Launch:
    """A program that is ready to start.

    Attributes:
        main: the module that is ``__main__`` while the program runs; None when it runs.
        argument_zero: ``sys.argv[0]``.
        path_entry: ``sys.path[0]``.
        execute: runs the program and returns the value of its ending.
        extra: a second module that the program must find by its name, if any.
        source: the text of a program that is in no file.
        codes: what that text was compiled to.
        variables: those of the shell that the program is a cell of; None where it is a program of
            its own, for which alone ``sys.argv``, ``sys.path`` and ``__main__`` are set.
        is_importing: what runs is the file of a function, which is called after that.
        followed: code after which more is run.
    """

    main: ModuleType | None
    argument_zero: str
    path_entry: str
    execute: Callable[[], object]
    extra: ModuleType | None = None
    source: str = ""
    codes: tuple[CodeType, ...] = ()
    variables: dict[str, Any] | None = None
    is_importing: bool = False
    followed: tuple[CodeType, ...] = ()

    def __post_init__(self) -> None:
        own = vars(self.extra or self.main) if self.variables is None else self.variables
        self.namespace: dict[str, Any] = own
        """The globals of the program."""

    def let_go(self) -> None:
        """The program is over: what holds us does not hold its globals any more."""
        self.namespace, self.execute = {}, dict


class Refused(BaseException):
    """Carries a :class:`TargetError` of ours past what the program itself may raise."""

    def __init__(self, error: TargetError) -> None:
        super().__init__(error)
        self.error = error


def launch(target: Target) -> Launch:
    """Prepare the program of ``target`` without starting it.

    Raises:
        TargetError: it cannot be found or read.
        Exception: what compiling it raises, mostly ``SyntaxError``.
    """
    return _LAUNCHERS[target.kind](target)


def _script(target: Target) -> Launch:
    path = _absolute(target.text)
    code = _compiled(_read_program(path, target.text), path)
    main = _main_module(SourceFileLoader("__main__", path), file=path)
    return Launch(main, target.text, _directory_of(path), partial(run_code, vars(main), code))


def _notebook(target: Target) -> Launch:
    # Here: what reads and runs notebooks takes long to import, and few programs are one.
    from gradscope.target.notebook import read_cells

    path = _absolute(target.text)
    cells = read_cells(_content(path, target.text), target.text)
    if importlib.util.find_spec("IPython") is None:
        raise ToolMissing(
            "to run a notebook takes IPython, which is not installed",
            "install it: pip install 'gradscope-torch[notebook]'",
        )
    from gradscope.target.shell import run_cells

    main = _main_module(BuiltinImporter)
    call = partial(run_cells, cells, main, _directory_of(path))
    # As in Jupyter: modules are found from the current directory, wherever a cell goes.
    return Launch(main, target.text, "", call)


def _module(target: Target) -> Launch:
    main = _main_module(BuiltinImporter)
    # Packages on the way see "-m" in sys.argv[0]; runpy then puts the file's name there.
    return Launch(main, "-m", here(), partial(_run_module, target.text))


def _run_module(name: str) -> None:
    # Imported late, as python does: a script does not find runpy in sys.modules.
    import runpy

    level_recursion()
    try:
        # The very function that the interpreter calls for -m: every detail of it is python's.
        runpy._run_module_as_main(name)  # type: ignore[attr-defined]
    except SystemExit as ending:
        reason = ending.__context__
        if isinstance(reason, runpy._Error):  # type: ignore[attr-defined]
            hint = "it is looked up from the current directory and the installed packages"
            raise Refused(TargetError(str(reason), f"check the name; {hint}")) from None
        raise


def _code(target: Target) -> Launch:
    main = _main_module(BuiltinImporter)
    # Python ends the last line itself, and errors at the end of the code show it.
    source = f"{target.text}\n"
    codes = compile_interactive(source, "<string>")
    keep_lines(source, codes, "<string>")
    call = partial(run_code, vars(main), *codes)
    every = tuple(codes)
    return Launch(main, "-c", "", call, source=source, codes=every, followed=every[:-1])


def _stdin(target: Target) -> Launch:
    if sys.stdin is None:
        raise TargetError(
            "there is no stdin to read the program from", "give a script instead of -"
        )
    # To its end, and as bytes for the coding cookie; the program then finds stdin empty.
    source = getattr(sys.stdin, "buffer", sys.stdin).read()
    code = _compiled(source, "<stdin>")
    main = _main_module(BuiltinImporter, file="<stdin>")
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    call = partial(run_code, vars(main), code)
    return Launch(main, target.text, "", call, source=text, codes=(code,))


def _function(target: Target) -> Launch:
    asked = FunctionCall.read(target.text)
    text = asked.path
    path = _absolute(text)
    code = _compiled(_read(path, text), path)
    stem = PurePath(path).stem
    # With a loader of our own, for the file need not end in .py.
    spec = importlib.util.spec_from_file_location(stem, path, loader=SourceFileLoader(stem, path))
    assert spec is not None
    # A module under its own name, not __main__: whoever asks for one function does not want main().
    module = importlib.util.module_from_spec(spec)

    def execute() -> object:
        run_code(vars(module), code)
        ready.is_importing = False
        # Only now: a name may have been imported, or made by a decorator.
        try:
            call = asked.of(module, text)
        except TargetError as error:
            raise Refused(error) from None
        return call()

    main = _main_module(BuiltinImporter)
    place = _directory_of(path)
    ready = Launch(main, text, place, execute, extra=module, is_importing=True)
    return ready


_LAUNCHERS: dict[str, Callable[[Target], Launch]] = {
    "script": _script,
    "notebook": _notebook,
    "module": _module,
    "code": _code,
    "function": _function,
    "stdin": _stdin,
}


def _compiled(source: bytes | str, filename: str) -> CodeType:
    # Not inherited: the future imports of this very file would hold for the program.
    return compile(source, filename, "exec", dont_inherit=True)


def _main_module(loader: object, file: str | None = None) -> ModuleType:
    """A fresh ``__main__`` with the globals, in the order, that python gives it."""
    main = ModuleType("__main__")
    namespace = vars(main)
    namespace["__loader__"] = loader
    # From 3.14 on annotations are made when they are asked for.
    if sys.version_info < (3, 14):
        namespace["__annotations__"] = {}
    namespace["__builtins__"] = builtins
    if file is not None:
        namespace["__file__"] = file
        namespace["__cached__"] = None
    return main


def _absolute(text: str) -> str:
    """The path as python makes it absolute: put after the current directory, and not tidied up."""
    if PurePath(text).is_absolute():
        return text
    if os.name == "nt":
        return str(Path(text).absolute())
    return f"{here()}{os.sep}{text}" if here() else text


def _directory_of(path: str) -> str:
    # Python follows links here: a linked script finds the modules beside the real one.
    return str(Path(path).resolve().parent)


def _read(path: str, text: str) -> bytes:
    """Read the source of a script.

    Raises:
        TargetError: it cannot be read, or is no text.
    """
    source = _content(path, text)
    # Python's words for this differ between versions, and none says what to do.
    if b"\0" in source:
        raise TargetError(f"{text} is not a Python script: it holds null bytes", "give its source")
    return source


def _read_program(path: str, text: str) -> bytes:
    """Read a script, unless its name says that it is data: much JSON and YAML is valid python.

    Raises:
        TargetError: it cannot be read, or is no program.
    """
    suffixes = PurePath(text.lower()).suffixes
    kinds = suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:]
    if not _DATA.isdisjoint(kinds):
        content = _content(path, text)
        if not _JSON.isdisjoint(kinds) and (".gz" in kinds or b'"gradscope' in content[:_HEAD]):
            raise TargetError(
                f"{text} is a saved report, not a program",
                f"to draw it again: gradscope show {shlex.quote(text)}",
            )
        raise TargetError(
            f"{text} is not a Python program",
            "give the script that reads it: script.py -- " + shlex.quote(text),
        )
    return _read(path, text)


def _content(path: str, text: str) -> bytes:
    """Read a file.

    Raises:
        TargetError: in the words of python, with a hint at what may have been meant.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        what = f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}"
        raise TargetError(what, missing_file_hint(text, error)) from None


# ---------------------------------------------------------------- compiling and executing


_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def compile_interactive(text: str, filename: str) -> list[CodeType]:
    """Compile code; if it ends in an expression, that becomes a piece of its own with a value."""
    whole = compile(text, filename, "exec", dont_inherit=True)
    # Errors and warnings have been given for the whole: the pieces must not repeat them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text, filename)
        final = tree.body.pop() if tree.body else None
        if not isinstance(final, ast.Expr):
            return [whole]
        # From the tree, so that every expression keeps its line and columns in the whole.
        body = compile(tree, filename, "exec", dont_inherit=True)
        last = ast.Expression(final.value)
        # A future import among the statements holds for the last expression, too.
        futures = body.co_flags & _FUTURES
        return [body, compile(last, filename, "eval", flags=futures, dont_inherit=True)]


def keep_lines(text: str, codes: Iterable[CodeType], filename: str) -> None:
    """Keep the lines of what follows ``python -c`` for tracebacks, as python does from 3.13 on."""
    keep = getattr(linecache, "_register_code", None)
    if keep is None:
        return
    # Later releases of 3.13 keep them by the code, so that who asks by the name, as `warnings`
    # does, gets none.
    by_code = hasattr(linecache, "_interactive_cache")
    for key in codes if by_code else (filename,):
        keep(key, text, filename)


def run_code(namespace: dict[str, Any], *codes: CodeType) -> object:
    """Execute ``codes`` one after the other in ``namespace``; return the value of the last."""
    value = None
    level_recursion()
    for code in codes:
        # `eval` runs both kinds of code; of statements it returns None.
        value = eval(code, namespace)
    return value
