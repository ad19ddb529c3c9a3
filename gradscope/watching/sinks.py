"""Where rows go: into a file of JSON lines, to TensorBoard, or to a function of the program.

Knows nothing of how rows come about.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gradscope.errors import OutputError
from gradscope.model.rows import HEAD, LogHead, ModuleRow, Row, line_of

_open: set[Path] = set()
"""The logs that are being written in this process."""


class Log:
    """A file of JSON lines, each there when its row is; an older log is kept until the first.

    Raises:
        OutputError: the file cannot be written, is being written by another block, or holds
            something that is no such log.
    """

    def __init__(self, path: Path, head: LogHead) -> None:
        self._path = path.absolute()
        if self._path in _open:
            raise OutputError(
                f"{path} is being written by another gradscope.watch()", "give each its own file"
            )
        self._head = b""
        try:
            if self._path.exists() and self._path.stat().st_size:
                self._head = line_of(head)
                with self._path.open("rb") as old:
                    if old.read(len(HEAD)) != HEAD:
                        raise OutputError(
                            f"{path} exists, and is no log of gradscope.watch()",
                            "choose another name, such as run.jsonl",
                        )
            self._stream = self._path.open("ab", buffering=0)
            try:
                self._stream.write(b"" if self._head else line_of(head))
            except OSError:
                self._stream.close()
                raise
        except OSError as error:
            raise OutputError(
                f"cannot write {path}: {error.strerror or error}", "choose another place"
            ) from None
        _open.add(self._path)

    def put(self, row: Row) -> None:
        line = self._head + line_of(row)
        if self._head:
            self._stream.truncate(0)
            self._head = b""
        # A full disk may take a part of it.
        if self._stream.write(line) != len(line):
            raise OSError("only a part of the line was written")

    def close(self) -> None:
        _open.discard(self._path)
        with contextlib.suppress(OSError):  # every line is there already
            self._stream.close()


def to_writer(writer: Any) -> Callable[[Row], None]:
    """Gives rows to a ``SummaryWriter`` of TensorBoard, or whatever else has its ``add_scalar``.

    Each number as ``gradscope/NAME`` or ``gradscope/NAME/MODULE``, at the step of the row; what did
    not happen is left out.  What was found is a text, where it takes any.
    """

    def put(row: Row) -> None:
        for name, value in _scalars(row):
            writer.add_scalar(f"gradscope/{name}", value, row.step)
        for name in ("trouble", "finding", "report"):
            if getattr(row, name) and hasattr(writer, "add_text"):
                writer.add_text(f"gradscope/{name}", getattr(row, name), row.step)

    return put


def _scalars(row: Row) -> Iterator[tuple[str, float]]:
    yield from _numbers(row, "")
    if row.loss is not None:
        yield "loss", row.loss
    if row.scale is not None:
        yield "scale", row.scale
        yield "skipped", float(row.skipped)
    for name, module in row.modules.items():
        yield from _numbers(module, f"/{name}")
    for name, term in row.terms.items():
        yield f"term_norm/{name}", term.norm
        yield f"term_share/{name}", term.share


def _numbers(row: ModuleRow, suffix: str) -> Iterator[tuple[str, float]]:
    for name in ("norm", "applied", "update"):
        value = getattr(row, name)
        if value is not None:
            yield name + suffix, value
    for name in ("none", "not_reached", "zero", "nonfinite"):
        count = getattr(row, name)
        if count or not suffix:
            yield name + suffix, count
