"""A look at one tensor from inside a running program."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch

from gradscope.autograd.isolation import hidden
from gradscope.errors import CaptureError
from gradscope.graphing.initial_gradient import fit, implicit_gradient, parse_gradient, to_tensor
from gradscope.graphing.probe import Detail, Probe
from gradscope.graphing.roots import usable_root
from gradscope.graphing.study import LiveGraph, listener_of, studied
from gradscope.model.report import Report
from gradscope.model.request import Study
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder


def look(
    recorder: Recorder | None,
    frame: FrameType,
    root: Any,
    gradient: Sequence[Any] | None,
    study: Study | None = None,
    listener: Any = None,
    detail: Detail | None = None,
) -> Report:
    """Walk from ``root`` and, when a gradient is given (``(None,)`` for the implicit 1), send it
    through.

    Args:
        recorder: what is known of the program; else the active recorder; else only names are known.
        frame: the caller, whose variables give names.
        root: a tensor that requires grad.
        gradient: what is fed in at the root.
        study: what else is asked of the graph.
        listener: who has heard of the calls behind it, where the recorder does not know.
        detail: how much of it to keep.

    Raises:
        RootError: when the root or the gradient does not fit.
        CaptureError: when the study needs calls that nobody has recorded.
    """
    # A recorder that was never started knows nothing, and answers every question so.
    recorder = recorder or Recorder.active or Recorder()
    with hidden():
        scopes = Scopes.of_frames(frames_from(frame, recorder.places))
        names = scopes.names(root) if isinstance(root, torch.Tensor) else []
        root = usable_root(root, names[0] if names else "the root", "root", recorder)
        probe = Probe([root], recorder, scopes, detail or Detail())
        needed = study is None or study.needs_gradient or root.numel() == 1
        wanted = gradient is not None and (needed or gradient[0] is not None)
        seed = _seed(gradient[0], root, scopes) if gradient and wanted else None
        # After the root and the gradient: a call can be wrong before it lacks anything.
        listener = listener or _listener(recorder, study)
        live = LiveGraph(probe, [root], [seed], recorder, listener, scopes)
        answer = studied(study, live)
        passes = [] if seed is None else [probe.own_pass(seed)]
        return probe.report(passes, studied=answer)


def _seed(gradient: Any, root: torch.Tensor, scopes: Scopes) -> torch.Tensor:
    if gradient is None:
        return implicit_gradient(root)
    if isinstance(gradient, str):
        return parse_gradient(gradient, root, scopes.merged())
    return fit(to_tensor(gradient, "the gradient"), root)


def _listener(recorder: Recorder, study: Study | None) -> Any:
    """Who has heard of the calls that a study needs; None where it needs none."""
    if study is None or not study.listener:
        return None
    kind = listener_of(study)
    found = next((one for one in recorder.listeners.all if isinstance(one, kind)), None)
    if found is None:
        raise CaptureError(
            f"{study.command} makes the calls behind a graph again, and nobody has recorded them",
            f"make the graph inside of gradscope.record({study.command}=True)",
        )
    return found
