"""Which words the sources of a program hold, read without running anything of it.

Tells that a name can exist nowhere in a program only where that is certain: where the program may
make names as it runs, or runs code that is not read here, the vocabulary is not complete.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradscope.filesystem import here
from gradscope.target.description import Target

_MAKES_NAMES = {"exec", "eval", "compile", "globals", "locals", "vars", "setattr", "__import__"}
_MAKES_NAMES |= {"__dict__", "hub"}
"""Functions and attributes by which a program may come to names or code that it does not spell."""

_RUNS_CODE = {"code", "importlib", "runpy"}
_CALLS_NO_BACKWARD = {"torch", "torchvision", "numpy", "scipy", "pandas", "matplotlib", "PIL"}
_CALLS_NO_BACKWARD |= {"tqdm", "yaml", "sklearn", "einops", "rich", "click"}
"""Packages in whose functions a backward call never stands, so that their variables are not
looked through."""

_MOST_FILES = 500


@dataclass(frozen=True)
class Vocabulary:
    """The texts of the files of one program, and the names that are assigned in them."""

    texts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, target: Target, source: str = "") -> Vocabulary | None:
        """Collect the names a program uses; None where not all that it may run is known.

        Args:
            target: the program.
            source: its text, where that is in no file.
        """
        files = _files_to_start(target)
        if not files and target.kind != "stdin":
            return None
        is_path = target.kind in ("script", "function")
        reading = _Reading(files[0].resolve().parent if is_path else Path(here()))
        try:
            waiting = [(reading.read(file), file.parent) for file in files]
            waiting += [] if files else [(reading.read_text(source), reading.folder)]
            reading.follow(waiting)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None  # python says what is wrong with it
        return reading.found()

    def mentions(self, word: str) -> bool:
        """Whether a word stands anywhere in the sources, be it in a comment."""
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        return any(whole.search(text) for text in self.texts)


def _files_to_start(target: Target) -> list[Path]:
    """The files that are run as the program; none where they are not known."""
    if target.kind in ("script", "function"):
        path = Path(target.text.rpartition("::")[0] or target.text)
        return [path] if path.is_file() else []
    if target.kind == "module":
        return list(_files_of(Path(here()), [*target.text.split("."), "__main__"]))
    return []


def _files_of(folder: Path, parts: list[str]) -> Iterator[Path]:
    """The files that importing a module loads if it is in this folder, the innermost first."""
    for length in range(len(parts), 0, -1):
        path = folder.joinpath(*parts[:length])
        for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if file.is_file():
                yield file


class _Reading:
    """Reads a file and all that it imports from its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._is_complete = True
        self._texts: list[str] = []
        self._names: dict[str, None] = {}
        self._known: set[Path] = set()

    def found(self) -> Vocabulary | None:
        """What was read; None where that is not all that may run."""
        known = Vocabulary(tuple(self._texts), tuple(self._names))
        return known if self._is_complete else None

    def read(self, file: Path) -> ast.Module:
        self._known.add(file.resolve())
        with tokenize.open(file) as stream:
            return self.read_text(stream.read())

    def read_text(self, text: str) -> ast.Module:
        self._texts.append(text)
        return ast.parse(text)

    def follow(self, waiting: list[tuple[ast.Module, Path]]) -> None:
        """Read what these files import, and so on, while that is of use."""
        while waiting and self._is_complete:
            tree, folder = waiting.pop(0)
            for node in ast.walk(tree):
                self._note(node)
                for start, parts in _imported(node, folder, self.folder):
                    files = list(_files_of(start, parts))
                    self._is_complete &= bool(files) or _is_harmless(node, parts[0])
                    new = [file for file in files if file.resolve() not in self._known]
                    waiting += [(self.read(file), file.parent) for file in new]
            self._is_complete &= len(self._known) <= _MOST_FILES

    def _note(self, node: ast.AST) -> None:
        self._is_complete &= not _may_make_names(node)
        self._names.update(dict.fromkeys(_assigned(node)))


def _assigned(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg


def _may_make_names(node: ast.AST) -> bool:
    name = getattr(node, "id", None) or getattr(node, "attr", None)
    # The methods model.eval() and torch.compile() are others.
    is_function = isinstance(node, ast.Name) or name in ("__dict__", "hub")
    return name in _MAKES_NAMES and is_function


def _imported(node: ast.AST, folder: Path, base: Path) -> Iterator[tuple[Path, list[str]]]:
    """The modules that a statement imports: the folder from which it looks, and their names."""
    if isinstance(node, ast.Import):
        yield from ((base, alias.name.split(".")) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        start = folder.joinpath(*[".."] * (node.level - 1)) if node.level else base
        parts = node.module.split(".") if node.module else []
        yield from ((start, [*parts, alias.name]) for alias in node.names)


def _is_harmless(node: ast.AST, package: str) -> bool:
    """Whether an import that is not of the program's folder can bring no variable in sight."""
    if isinstance(node, ast.ImportFrom) and (
        node.level or any(alias.name == "*" for alias in node.names)
    ):
        return False
    is_standard = package in sys.stdlib_module_names and package not in _RUNS_CODE
    return is_standard or package in _CALLS_NO_BACKWARD
