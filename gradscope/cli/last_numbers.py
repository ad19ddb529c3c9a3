"""Whether a program gave the numbers that it gave when it was looked at before.

Kept beside the last target of the directory: the small tensors of one graph, and what the program
was made of.  Costs nothing of the device: what is compared is in the report.
"""

from __future__ import annotations

import json
import math
import sys
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradscope.errors import OutputError
from gradscope.filesystem import here, is_installed, is_standard
from gradscope.render.output import write

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
