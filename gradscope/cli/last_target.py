"""The target that was run last in a directory, so that the next command need not name it again;
and whether it gives the numbers that it gave before: the small tensors of one graph, and what the
program was made of.

Kept in the user's cache folder, not in the project; losing it costs one argument.  Costs nothing of
the device: what is compared is in the report.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gradscope.errors import GradscopeError, OutputError, TargetError
from gradscope.filesystem import cache_folder, here, is_installed, is_standard, key_of_here
from gradscope.render.output import write
from gradscope.target import Target

if TYPE_CHECKING:
    from gradscope.model.report import Report
    from gradscope.model.request import Request
    from gradscope.target import Target

NOTE = (
    "these numbers differ from those of the run before, though the program is the same: it "
    "probably draws random numbers; --seed 0 makes runs equal"
)

MOST = 64
"""Tensors that are compared, from the root on."""

TOLERANCE = 1e-3
"""What threads that add in another order may change, relative."""


class LastNumbers:
    """What was seen of a target in this directory, to be asked before the program runs.

    ``seed``: the one that was given; with one nothing is said.
    """

    def __init__(self, path: Path, target: Target, request: Request, seed: int | None) -> None:
        self.path = path
        self.seed = seed
        start = (request.root, request.call, request.create_graph, request.eager)
        self.asked = [target.describe(), *start, seed]
        # The program may go elsewhere.
        self.folder = here()
        self.script = target.text if target.kind in ("script", "notebook", "function") else ""
        self.last_module = next(reversed(sys.modules))

    def have_changed(self, report: Report) -> bool:
        """Whether the same program gave other numbers; from now on these are remembered."""
        now: dict[str, Any] = {
            "asked": self.asked,
            "files": self._files(report),
            "numbers": _numbers(report),
        }
        before: Any = None
        with suppress(OSError, ValueError):
            before = json.loads(self.path.read_text("utf-8"))
        with suppress(OSError, OutputError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write(str(self.path), json.dumps(now))
        if self.seed is not None or not isinstance(before, dict):
            return False
        is_same = all(before.get(part) == now[part] for part in ("asked", "files"))
        return is_same and not _agree(before.get("numbers"), now["numbers"])

    def _files(self, report: Report) -> dict[str, list[int]]:
        """What the program is made of, with when it was written and how long it is."""
        names = ["__main__"]
        with suppress(RuntimeError):  # a thread of the program is importing something
            # Those that came with the program are the last ones.
            names += takewhile(lambda name: name != self.last_module, reversed(sys.modules))
        # One command needs more of gradscope than another.
        own = (name for name in names if not name.startswith("gradscope"))
        modules = (getattr(sys.modules.get(name), "__file__", None) for name in own)
        files = {self.script.partition("::")[0], *(one.file for one in report.graph.origins)}
        files |= {one for one in modules if isinstance(one, str)}
        found = {}
        for file in sorted(files):
            with suppress(OSError, ValueError):
                if file and not (is_standard(file) or is_installed(file)):
                    state = Path(self.folder, file).stat()
                    found[file] = [state.st_mtime_ns, state.st_size]
        return found


def _numbers(report: Report) -> dict[str, list[float]]:
    """The values of the first small tensors, by their places in the graph."""
    found: dict[str, list[float]] = {}
    for node in report.graph.nodes:
        for output, tensor in enumerate(node.outputs):
            if len(found) < MOST and tensor is not None and 0 < len(tensor.values or ()) <= MOST:
                found[f"{node.op} {node.id}.{output}"] = [float(v) for v in tensor.values or ()]
    return found


def _agree(before: object, now: dict[str, list[float]]) -> bool:
    if not isinstance(before, dict):
        return True
    # One look may keep more tensors than another; another graph has other places.
    pairs = [(before[place], values) for place, values in now.items() if place in before]
    is_other = bool(before and now and not pairs)
    return not is_other and all(_alike(one, other) for one, other in pairs)


def _alike(before: object, now: list[float]) -> bool:
    if not isinstance(before, list) or len(before) != len(now):
        return False
    room = TOLERANCE * max((abs(value) for value in now if math.isfinite(value)), default=0.0)
    return all(
        abs(old - new) <= room if math.isfinite(new) else str(old) == str(new)
        for old, new in zip(before, now, strict=True)
    )


def remember(target: Target) -> None:
    """Note the target of this directory; a cache that cannot be written is no error."""
    if target.kind == "stdin":
        return  # what was typed or piped in is gone
    # The current directory may be gone, too.
    with suppress(OSError, OutputError):
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: another run in this directory may read it at any moment.
        write(str(path), json.dumps(msgspec.to_builtins(target)))


def numbers(target: Target, request: Request, seed: int | None) -> LastNumbers | None:
    """What this directory knows of a target's numbers; None where nothing can be known."""
    if target.kind == "stdin" or not here():
        return None
    return LastNumbers(_path().with_suffix(".numbers"), target, request, seed)


@contextmanager
def remembered(target: Target, is_told: bool = True) -> Iterator[None]:
    """Remember the target that the block runs, unless it turns out to be none.

    ``is_told``: whether this process is the one that remembers.
    """
    path, before = _now()
    if is_told:
        remember(target)
    try:
        yield
    except TargetError:
        if is_told:
            _restore(path, before)
        raise


@contextmanager
def kept() -> Iterator[None]:
    """While the block runs, other processes may remember; afterwards all is as before."""
    path, before = _now()
    try:
        yield
    finally:
        _restore(path, before)


def _now() -> tuple[Path | None, bytes | None]:
    """Where the target of this directory is kept, and what is there."""
    path = _path() if here() else None
    return path, path.read_bytes() if path is not None and path.is_file() else None


def _restore(path: Path | None, before: bytes | None) -> None:
    with suppress(OSError, OutputError):
        if path is not None and before is None:
            path.unlink(missing_ok=True)
        elif path is not None and before is not None:
            write(str(path), before)


def is_first_tree() -> bool:
    """Whether no tree was drawn on a terminal in this directory before; there has been one now."""
    with suppress(OSError):
        path = _path().with_suffix(".signs")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
        return True
    return False


def recall() -> Target:
    """The target that was run last in this directory.

    Raises:
        TargetError: when there is none.
    """
    try:
        # The file may have been edited, or written by another version.
        return msgspec.convert(json.loads(_path().read_text("utf-8")), Target)
    except (OSError, ValueError, GradscopeError):
        raise TargetError(
            "no program given, and none was run in this directory before",
            "name one: gradscope trace script.py (or notebook.ipynb, -m MODULE, -c CODE, "
            "script.py::function)",
        ) from None


def _path() -> Path:
    return cache_folder() / "last" / f"{key_of_here()}.json"
