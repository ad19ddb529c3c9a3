"""What a closer study of a live graph starts from, and the way to whoever answers it.

Knows nothing of what is studied: each question is a room of its own, named by its
:class:`~gradscope.model.request.Study`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from gradscope import doing
from gradscope.graphing.probe import Probe
from gradscope.model.report import Report
from gradscope.model.request import Study
from gradscope.recording.names import Scopes
from gradscope.recording.recorder import Recorder
from gradscope.words import count


@dataclass(frozen=True)
class LiveGraph:
    """A walked graph before backward has freed anything, and what is known of it.

    ``probe.walked`` holds the live nodes by the ids of ``probe.graph``; ``roots`` are the tensors
    (or gradient edges) that backward starts from, ``gradients`` what is fed in at each: None for
    the implicit 1, or where no gradient is asked for.
    """

    probe: Probe
    roots: Sequence[Any]
    gradients: Sequence[torch.Tensor | None]
    recorder: Recorder
    listener: Any
    scopes: Scopes


def studied(asked: Study | None, live: LiveGraph) -> dict[str, Any]:
    """The answer, by the Report's field it belongs to; empty where nothing was asked.

    Raises:
        GradscopeError: when the question does not fit the graph.
    """
    if asked is None:
        return {}
    doing.begin(f"{asked.doing}, {count(len(live.probe.graph.nodes), 'node')}")
    return {asked.field: _room(asked).study(live, asked)}


def follower(asked: Study | None, report: Report | None) -> Callable[[], Report] | None:
    """What completes a report once the program's own call has ended; None where nothing does.

    A room that has a function ``follow(answer)`` is told before the call, and what that returns
    gives the completed answer after it.
    """
    follow = getattr(_room(asked), "follow", None) if asked and report else None
    finish = follow(getattr(report, asked.field)) if follow and asked else None
    if finish is None or asked is None or report is None:
        return None
    return lambda: msgspec.structs.replace(report, **{asked.field: finish()})


def _room(asked: Study) -> Any:
    return importlib.import_module(f"gradscope.{asked.room}")
