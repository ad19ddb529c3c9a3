"""A look at one tensor, and a report from a file."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gradscope.api.report import Report
from gradscope.diagnose import diagnose, find_rule
from gradscope.model import storage
from gradscope.model.report import Report as PlainReport

if TYPE_CHECKING:
    import torch


def trace(root: torch.Tensor) -> Report:
    """The graph that ``root.backward()`` would walk.

    Args:
        root: any tensor that requires grad.

    Raises:
        RootError: when ``root`` carries no gradient history.
    """
    from gradscope.running.look import look

    return Report.of(look(None, sys._getframe(1), root, None))


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
    from gradscope.running.look import look

    return Report.of(look(None, sys._getframe(1), root, (gradient,)))


def doctor(root: torch.Tensor, *, ignore: Collection[str] = ()) -> Report:
    """What is wrong with a graph that has been built, and with the gradient that flows through it.

    Nothing is accumulated into ``.grad`` and no buffer is freed.  The rules apply that need no more
    than the graph, its gradients and its leaves.  ``notes`` say what is left out: how the graph was
    made, the optimizer and the training loop are seen by ``record(doctor=True)``.

    Args:
        root: a tensor of one element that requires grad, such as a loss.
        ignore: rules that stay silent, by code (``"GS205"``) or name (``"zero-gradient"``).

    Returns:
        A report with ``findings``, worst first.

    Raises:
        RootError: when ``root`` carries no gradient history, or has more than one element.
        CaptureError: when an earlier backward call has freed the graph.
        GradscopeError: when ``ignore`` names no rule.
    """
    from gradscope.running.built import examine

    ignored = codes(ignore)
    return diagnosed(examine(None, sys._getframe(1), root), ignored)


def load(path: str | Path, max_size: int | None = storage.MAX_SIZE) -> Report:
    """A report saved as .json or .json.gz.

    Args:
        path: the file.
        max_size: bytes of JSON, unpacked, that are read at most; None is no limit.

    Raises:
        ReportError: when the file is not a report that this version reads, or is larger.
    """
    return Report.of(storage.load(Path(path), max_size))


def codes(ignore: Collection[str]) -> tuple[str, ...]:
    """The codes of the rules that are named.

    Raises:
        TypeError: it is one text, or something that is no text is among them.
        GradscopeError: one of them is no rule.
    """
    if isinstance(ignore, str):
        raise TypeError(f"ignore takes several rules: ignore=[{ignore!r}]")
    for word in ignore:
        if not isinstance(word, str):
            raise TypeError(f"ignore takes codes or names of rules, not {type(word).__name__}")
    return tuple(find_rule(word).code for word in ignore)


def diagnosed(found: PlainReport, ignored: Collection[str]) -> Report:
    """The report with its findings."""
    return Report.of(msgspec.structs.replace(found, findings=diagnose(found, ignored)))
