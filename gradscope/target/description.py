"""The description of a program to run: plain data that can be compared and kept as JSON; and what
was meant when the file or function that it names is missing.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import keyword
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Literal, NamedTuple

from gradscope.errors import TargetError
from gradscope.filesystem import is_file
from gradscope.words import listed, nearest

TargetKind = Literal["script", "notebook", "module", "code", "function", "stdin", "cell"]

_WAYS = (
    "give script.py, script.py::function, notebook.ipynb, -m MODULE, -c CODE, or - for a program "
    "on stdin"
)

NOTEBOOK = ".ipynb"
"""How the name of a notebook ends."""


class FunctionCall(NamedTuple):
    """A call of the function ``name`` (dots go into classes) of a file."""

    path: str
    name: str
    positional: tuple[object, ...] = ()
    keywords: Mapping[str, object] = MappingProxyType({})

    @classmethod
    def read(cls, text: str) -> FunctionCall:
        """``train.py::fit(0, lr=0.1)``, or without the brackets.

        Raises:
            TargetError: there is no name, or an argument is no literal.
        """
        found = re.fullmatch(r"(.+?)::([^\W\d]\w*(?:\.[^\W\d]\w*)*)(\(.*\))?", text, re.DOTALL)
        if found is None:
            raise TargetError(
                f"{text!r} does not name a function in a file",
                "write script.py::function, or script.py::Class.method",
            )
        try:
            call = ast.parse(f"f{found[3] or '()'}", mode="eval").body
            # `f(0)(1)` calls what a call returns, and `**` is no name.
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                raise ValueError
            named = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
            if len(named) < len(call.keywords) or any(one.arg is None for one in call.keywords):
                raise ValueError
            return cls(found[1], found[2], tuple(map(ast.literal_eval, call.args)), named)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            raise TargetError(
                f"{text!r}: its arguments are no literals",
                "write numbers, texts, lists and the like: 'script.py::train(0, lr=0.1)'",
            ) from None

    def of(self, module: ModuleType, text: str) -> Callable[[], object]:
        """Return the call, ready to be made.

        Args:
            module: the loaded file.
            text: the file as the user typed it, for messages.

        Raises:
            TargetError: it is not there, is no function, or does not take these arguments.
        """
        found: object = module
        for part in self.name.split("."):
            if not hasattr(found, part):
                what = f"{text} has no function {self.name!r}"
                raise TargetError(what, _names_hint(self.name, module))
            found = getattr(found, part)
        if not callable(found):
            what = f"{text}::{self.name} is not a function but of type {type(found).__name__}"
            raise TargetError(what, _names_hint(self.name, module))
        call = partial(found, *self.positional, **self.keywords)
        try:
            signature = inspect.signature(found)
        except (TypeError, ValueError):
            # Some builtins tell nothing about their parameters; calling them will.
            return call
        try:
            signature.bind(*self.positional, **self.keywords)
        except TypeError as error:
            takes = ", ".join(
                f"{name}={name}" if one.kind is one.KEYWORD_ONLY else name
                for name, one in signature.parameters.items()
            )
            what = f"{text}::{self.name}: {error}"
            hint = f"give its arguments: '{text}::{self.name}({takes})'"
            raise TargetError(what, hint) from None
        return call


@dataclass(frozen=True)
class Target:
    """One program to run.

    Attributes:
        kind: how ``text`` is meant.
        text: a path, a module name, code, ``PATH::NAME`` or ``PATH::NAME(0, 2)``, ``-``, or for a
            cell ``In[3]``.
        arguments: what the program finds in ``sys.argv[1:]``.
        lets: names and unevaluated literals from ``--let``; only for ``"code"``.

    Raises:
        TargetError: the parts do not fit together.
    """

    kind: TargetKind
    text: str
    arguments: tuple[str, ...] = ()
    lets: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        # An empty program is a program; an empty path or module name is a slip.
        if not self.text and self.kind != "code":
            raise TargetError("the program to run has an empty name", _WAYS)
        if self.kind == "function":
            self._check_function()
        if self.lets and self.kind != "code":
            raise TargetError("--let only works with -c", "a script makes its own tensors")
        for name, _ in self.lets:
            if not name.isidentifier() or keyword.iskeyword(name):
                raise TargetError(f"--let cannot bind {name!r}", "write --let NAME=LITERAL")

    def _check_function(self) -> None:
        path = FunctionCall.read(self.text).path
        if path.endswith(NOTEBOOK):
            raise TargetError(
                f"{self.text!r} names a function of a notebook; only those of scripts are called",
                "give the notebook itself, or put the function into a file of its own",
            )

    def describe(self) -> str:
        """Return the target as a user would type it, quoted for a shell."""
        if self.kind == "module":
            words = ["-m", self.text]
        elif self.kind == "code":
            words = ["-c", self.text]
            for name, literal in self.lets:
                words += ["--let", f"{name}={literal}"]
        elif self.kind == "cell":
            return self.text
        else:
            words = [self.text]
        if self.arguments:
            words += ["--", *self.arguments]
        return shlex.join(words)


def parse_target(text: str, arguments: Iterable[str] = ()) -> Target:
    """Read a target that was typed as one word: a path, ``PATH::NAME`` with or without
    ``(0, lr=0.1)``, or ``-``.

    Args:
        text: the word.  One colon, as in ``C:\\train.py``, means nothing; two name a function,
            unless a file of exactly this name exists.
        arguments: what the program is to find in ``sys.argv[1:]``.

    Raises:
        TargetError: the word is empty, or what follows ``::`` is no name or call.
    """
    kind: TargetKind = "script"
    if text == "-":
        kind = "stdin"
    elif "::" in text and not is_file(text):
        kind = "function"
    elif text.endswith(NOTEBOOK):
        kind = "notebook"
    return Target(kind, text, tuple(arguments))


_SHOWN_NAMES = 8


def missing_file_hint(text: str, error: OSError) -> str:
    """Say what to do about a script that cannot be opened: the nearest name, or another way."""
    path = Path(text)
    if isinstance(error, PermissionError):
        return "make the file readable"
    if isinstance(error, IsADirectoryError):
        return "give the script itself"
    # A name as typed, for the hint is to be pasted back.
    beside = [
        other.name for suffix in (".py", NOTEBOOK) for other in path.parent.glob(f"*{suffix}")
    ]
    nearest = difflib.get_close_matches(path.name, beside, n=1)
    if nearest:
        return f"did you mean {path.with_name(nearest[0])}?"
    if _is_module(text):
        return f"to run a module, write -m {text}"
    return "check the path; it is taken from the current directory"


def _is_module(name: str) -> bool:
    """Whether there is a package or module that a dotted name begins with."""
    first = name.partition(".")[0]
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    return PathFinder.find_spec(first, ["", *sys.path]) is not None


def _names_hint(name: str, module: ModuleType) -> str:
    # Not what the file imported: nobody means torch.relu by train.py::relu.
    own = [
        known
        for known, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    if not own:
        return "the file defines no functions"
    return f"it has: {listed(nearest(name, own), _SHOWN_NAMES)}"
