"""The public Python interface: look at a tensor's graph from inside a program.

Safe at a breakpoint: buffers are kept, ``.grad`` and the random state stay as they are.  The
command line stands on the same rooms.  torch is imported only by the functions that need it.
"""

from __future__ import annotations

import html
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from gradscope import render
from gradscope.model import report as plain
from gradscope.model import storage
from gradscope.render.options import Options, ToPrint, ToSave, options_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from gradscope.recording.recorder import Recorder


class Report(plain.Report, frozen=True):
    """What was found about one graph: plain data (see :mod:`gradscope.model.report`) that can show
    itself."""

    @classmethod
    def of(cls, found: plain.Report) -> Report:
        """The same data with the ways of looking at it."""
        return cls(*msgspec.structs.astuple(found))

    def show(self, **options: Unpack[ToPrint]) -> None:
        """Print the tree to standard output.

        Args:
            depth: open modules down to this depth of calls.
            all: show every node; fold nothing.
            path: show only the ways from the root to the leaf of this name.
            focus: open the modules, functions, variables or expressions that match this pattern,
                with ``*`` and ``?``, and close the rest.
            top: list so many nodes with the largest gradients; with the smallest if negative.
            width: columns of the text; the terminal's own by default.
            lines: how many lines of it folding aims at.
            values: show the values of tensors of every size that the report holds.
            saved: show what each node saved for backward.
            call: which of several backward calls to show, by its number; by default the first.
            rank: whose gradients to show, of a report of several ranks; by default rank 0's.
            color: colour the text.
            unicode: draw with box characters rather than ASCII.

        Raises:
            TypeError: for any other keyword, or a value of another type.
            GradscopeError: when ``path``, ``focus``, ``call`` or ``rank`` names nothing in the
                report.
        """
        options["width"] = options.get("width") or shutil.get_terminal_size((100, 40)).columns
        drawing = _options(Report.show, ToPrint, options)
        render.output.write(render.output.STDOUT, str(render.render(self, "tree", drawing)))

    def save(self, file: str | Path, /, **options: Unpack[ToSave]) -> None:
        """Write a file; its suffix chooses the format, as for ``gradscope trace -o``.

        Args:
            file: .json, .json.gz, .dot, .svg, .png, .pdf, .html, .csv or .txt.
            options: as in :meth:`show`, and
            sort: the column of a .csv by which its rows are ordered.
            direction: which way the arrows of a picture point, ``"backward"`` or ``"forward"``.

        Raises:
            TypeError: for any other keyword, or a value of another type.
            OutputError: when the suffix is unknown or the file cannot be written; a file that was
                there before is kept.
            ToolMissing: when a picture is asked for and there is no Graphviz.
        """
        drawing = _options(Report.save, ToSave, options)
        render.save(self, str(file), render.format_for(file), drawing)

    def _repr_html_(self) -> str:
        text = html.escape(str(render.render(self, "tree", options_of(width=120))))
        return f'<pre style="line-height: 1.2; overflow-x: auto">{text}</pre>'


def _options(method: Callable[..., None], known: type, given: Mapping[str, object]) -> Options:
    """What the keywords of a method come to; None is as good as left out.

    Raises:
        TypeError: naming the first that it does not know, and those that it does; or the first
            whose value is of another type.
    """
    names = known.__annotations__
    for name in given:
        if name not in names:
            raise TypeError(
                f"{method.__qualname__}() got an unexpected keyword argument {name!r}; "
                f"it takes {', '.join(names)}"
            )
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        return options_of(**msgspec.convert(chosen, known))
    except msgspec.ValidationError as error:
        raise TypeError(f"{method.__qualname__}(): {error}") from None


class Run:
    """A block of code that was recorded: its results can be looked at with the lines that made
    them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def trace(self, root: torch.Tensor) -> Report:
        """As :func:`trace`, for a tensor made in the block."""
        return _look(self._recorder, sys._getframe(1), root, None)

    def backward(self, root: torch.Tensor, gradient: Any = None) -> Report:
        """As :func:`backward`, for a tensor made in the block."""
        return _look(self._recorder, sys._getframe(1), root, (gradient,))


def trace(root: torch.Tensor) -> Report:
    """The graph that ``root.backward()`` would walk.

    Args:
        root: any tensor that requires grad.

    Raises:
        RootError: when ``root`` carries no gradient history.
    """
    return _look(None, sys._getframe(1), root, None)


def backward(root: torch.Tensor, gradient: Any = None) -> Report:
    """The graph, and the gradient that flows along each edge when ``gradient`` is fed in at
    ``root``.

    Nothing is accumulated into ``.grad`` and no buffer is freed.

    Args:
        root: any tensor that requires grad.
        gradient: a tensor or nested list of the root's shape, or text as for ``--gradient``; may be
            left out for a root of one element, where it is 1.

    Raises:
        RootError: when ``root`` carries no gradient history or ``gradient`` does not fit it.
    """
    return _look(None, sys._getframe(1), root, (gradient,))


@contextmanager
def record() -> Iterator[Run]:
    """Record what the ``with`` block runs, so that its graphs are labelled with expressions and
    lines.

    Blocks may be nested, also when the program itself runs under the command line.
    """
    from gradscope.recording.recorder import Recorder

    if Recorder.active is not None:
        # Under the command line, or in an outer block, everything is recorded already.
        yield Run(Recorder.active)
        return
    recorder = Recorder().start()
    try:
        yield Run(recorder)
    finally:
        recorder.stop()


def load(path: str | Path, max_size: int | None = storage.MAX_SIZE) -> Report:
    """A report saved as .json or .json.gz.

    Args:
        path: the file.
        max_size: bytes of JSON, unpacked, that are read at most; None is no limit.

    Raises:
        ReportError: when the file is not a report that this version reads, or is larger.
    """
    return Report.of(storage.load(Path(path), max_size))


def _look(
    recorder: Recorder | None,
    frame: FrameType,
    root: torch.Tensor,
    gradient: Sequence[Any] | None,
) -> Report:
    from gradscope.running.look import look

    return Report.of(look(recorder, frame, root, gradient))
