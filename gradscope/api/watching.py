"""A training that is watched for as long as it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from gradscope.api.keywords import public
from gradscope.errors import CaptureError
from gradscope.escaping import for_terminal
from gradscope.model.rows import LogHead, Row
from gradscope.target import clean
from gradscope.words import VERSION, in_python

if TYPE_CHECKING:
    import torch

    from gradscope.watching.sinks import Log
    from gradscope.watching.watch import Watch

_watched: set[int] = set()
"""The ids of the models that a block watches now; a model may be equal to another."""


@dataclass(repr=False, eq=False)
class WatchedTraining:
    """The block of :func:`watch`.

    ``problems`` are lines on what did not go as it should, such as a disk that is full; each is
    written to stderr once, and none is raised.
    """

    _model: torch.nn.Module
    _every: int | None
    _to: Any
    _keep: int
    _by: str | None = None
    problems: list[str] = field(default_factory=list, init=False)
    _watch: Watch | None = field(default=None, init=False)
    _log: Log | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<gradscope.watch({type(self._model).__name__}, every={self._every})>"

    @in_python()
    def __enter__(self) -> WatchedTraining:
        """Begin to watch.

        Raises:
            CaptureError: the model has no parameter that requires grad, or is watched already.
            OutputError: the file cannot be written, or holds something else.
        """
        from gradscope.watching.turns import USUAL
        from gradscope.watching.watch import Watch

        if id(self._model) in _watched:
            raise CaptureError(
                "this model is being watched already",
                "leave the other block first, or use its rows",
            )
        parameters = sum(one.requires_grad for one in self._model.parameters())
        if not parameters:
            raise CaptureError(
                "no parameter of this model requires grad", "give the model that is trained"
            )
        take = self._taking(LogHead(VERSION, self._every or USUAL, parameters))
        _watched.add(id(self._model))
        is_path = isinstance(self._to, (str, os.PathLike))
        log = Path(self._to).absolute() if is_path else None
        self._watch = Watch(
            *(self._model, self._every, take, self._tell, self._keep, log, _rank()),
            by_term=self._by == "term",
        )
        self.problems = self._watch.problems
        self._watch.start()
        return self

    def _taking(self, head: LogHead) -> Callable[[Row], object]:
        from gradscope.watching import sinks

        if isinstance(self._to, (str, os.PathLike)):
            # One file, whatever the number of processes; the others tell the one that writes.
            self._log = None if _rank() else sinks.Log(Path(self._to), head)
            return self._log.put if self._log is not None else lambda _: None
        has_scalars = callable(getattr(self._to, "add_scalar", None))
        return sinks.to_writer(self._to) if has_scalars else self._to

    def _tell(self, line: str) -> None:
        if sys.stderr is not None:
            rank = f"rank {_rank()}: " if _rank() else ""
            print(f"gradscope.watch: {rank}{for_terminal(line)}", file=sys.stderr)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _watched.discard(id(self._model))
        with in_python():
            if error is not None:
                clean(error)
            if self._watch is not None:
                self._watch.stop(is_cut_short=error is not None)
            if self._log is not None:
                self._log.close()


@public
def watch(
    model: torch.nn.Module,
    *,
    every: int | None = None,
    to: str | os.PathLike[str] | Callable[[Row], object] | Any,
    keep: int = 5,
    by: Literal["term"] | None = None,
) -> WatchedTraining:
    """Watch the gradients of a model for as long as a block runs, at the cost of a few norms.

        with gradscope.watch(model, every=10, to="run.jsonl"):
            train()

    Each step that is looked at gives one :class:`Row`, however many backward calls add up to it,
    and so does each call that no step follows: the norm of ``.grad`` when backward has ended, that
    of ``.grad`` which the optimizer then used, by how much its step has changed the weights, and
    how many parameters were not reached, hold None, only zeros, or what is not finite; for the
    model and for each of its parts.  A step is over when each optimizer of the model has made its
    own.

    Where a gradient is not finite, becomes zero, or is ten times as large as before, the doctor
    watches all that comes until the next backward call has been made.  What it finds is told on
    stderr and in the row of that call; its report is kept beside the log.

    Nothing is put on the model, and nothing is raised into the block: what goes wrong is one line
    on stderr, and in ``problems``.

    Args:
        model: its parameters that require grad are watched; others may come and go.
        every: how many steps there are for one that is looked at, 1 or more; by default 10, and
            each of the first 20 is looked at, too.
        to: where the rows go. A path: a file of JSON lines, anew each time, written by rank 0,
            which the others tell what only they know. A ``SummaryWriter`` of TensorBoard, or what
            has its ``add_scalar``. Or any function, which is called with each row; one that raises
            is not called again.
        keep: how often the doctor watches a call, at most; 0 or more.
        by: "term": each row has in ``terms`` what each term of the loss brings, at the cost of one
            more backward pass for each of them in each step that is looked at.

    Raises:
        TypeError: an argument is of another type.
        ValueError: ``every`` is smaller than 1, or ``keep`` than 0; ``by`` is something else.
    """
    import torch

    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"watch() takes a torch.nn.Module, not {type(model).__name__}")
    is_path = isinstance(to, (str, os.PathLike))
    if not (is_path or callable(to) or callable(getattr(to, "add_scalar", None))):
        raise TypeError(
            "watch() takes to=PATH, a SummaryWriter or a function, not " + type(to).__name__
        )
    if by not in (None, "term"):
        raise ValueError(f'watch() takes by="term", not {by!r}')
    return WatchedTraining(model, every, to, keep, by)


def _rank() -> int:
    import torch

    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    # Lightning tells its processes the second alone.
    rank = os.environ.get("RANK") or os.environ.get("LOCAL_RANK", "0")
    return int(rank) if rank.isdigit() else 0
