"""The description of a program to run: plain data that can be compared and kept as JSON.

Knows how a target is written on a command line, and nothing of files or of running it.
"""

from __future__ import annotations

import keyword
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gradscope.errors import TargetError
from gradscope.filesystem import is_file

TargetKind = Literal["script", "notebook", "module", "code", "function", "stdin", "cell"]

_WAYS = (
    "give script.py, script.py::function, notebook.ipynb, -m MODULE, -c CODE, or - for a program "
    "on stdin"
)

NOTEBOOK = ".ipynb"
"""How the name of a notebook ends."""


@dataclass(frozen=True)
class Target:
    """One program to run.

    Attributes:
        kind: how ``text`` is meant.
        text: a path, a module name, code, ``PATH::NAME``, ``-``, or for a cell ``In[3]``.
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
        path, separator, name = self.text.rpartition("::")
        if not (path and separator and all(part.isidentifier() for part in name.split("."))):
            raise TargetError(
                f"{self.text!r} does not name a function in a file",
                "write script.py::function, or script.py::Class.method",
            )
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
    """Read a target that was typed as one word: a path, ``PATH::NAME``, or ``-``.

    Args:
        text: the word.  One colon, as in ``C:\\train.py``, means nothing; two name a function,
            unless a file of exactly this name exists.
        arguments: what the program is to find in ``sys.argv[1:]``.

    Raises:
        TargetError: the word is empty, or what follows ``::`` is no name.
    """
    kind: TargetKind = "script"
    if text == "-":
        kind = "stdin"
    elif "::" in text and not is_file(text):
        kind = "function"
    elif text.endswith(NOTEBOOK):
        kind = "notebook"
    return Target(kind, text, tuple(arguments))
