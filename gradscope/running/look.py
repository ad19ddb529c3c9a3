"""A look at one tensor from inside a running program."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch

from gradscope.autograd.isolation import unseen
from gradscope.graphing.initial_gradient import fit, implicit_gradient, parse_gradient
from gradscope.graphing.literal import to_tensor
from gradscope.graphing.probe import Detail, Probe
from gradscope.graphing.roots import usable_root
from gradscope.model.report import Report
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder


def look(
    recorder: Recorder | None, frame: FrameType, root: Any, gradient: Sequence[Any] | None
) -> Report:
    """Walk from ``root`` and, when a gradient is given (``(None,)`` for the implicit 1), send it
    through.

    Args:
        recorder: what is known of the program; else the active recorder; else only names are known.
        frame: the caller, whose variables give names.

    Raises:
        RootError: when the root or the gradient does not fit.
    """
    # A recorder that was never started knows nothing, and answers every question so.
    recorder = recorder or Recorder.active or Recorder()
    with unseen():
        scopes = Scopes.of_frames(frames_from(frame, recorder.places))
        names = scopes.names(root) if isinstance(root, torch.Tensor) else []
        root = usable_root(root, names[0] if names else "the root", "root", recorder)
        probe = Probe([root], recorder, scopes, Detail())
        if gradient is None:
            return probe.report()
        return probe.report([probe.own_pass(_seed(gradient[0], root, scopes))])


def _seed(gradient: Any, root: torch.Tensor, scopes: Scopes) -> torch.Tensor:
    if gradient is None:
        return implicit_gradient(root)
    if isinstance(gradient, str):
        return parse_gradient(gradient, root, scopes.merged())
    return fit(to_tensor(gradient, "the gradient"), root)
