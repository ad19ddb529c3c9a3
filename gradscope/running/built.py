"""A graph that is there already, and what is wrong with it: the doctor without a run to watch."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from gradscope.analyses.doctor.capture import Capture
from gradscope.analyses.doctor.cases import look_before, watched_case
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.raisers import raiser_of
from gradscope.analyses.doctor.report_builder import ReportBuilder, StepLog
from gradscope.autograd.calls import edge_of
from gradscope.autograd.isolation import hidden
from gradscope.autograd.nodes import leaf_of, walk
from gradscope.errors import CaptureError, RootError, described
from gradscope.graphing.blame import explain_failure
from gradscope.graphing.initial_gradient import implicit_gradient
from gradscope.graphing.roots import usable_root
from gradscope.graphing.watched_call import own_call
from gradscope.model.report import Report
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder

UNSEEN = (
    "only this graph and its gradients were examined: how it was made, the optimizer and the loop "
    "around it show when the block that does all that is recorded, with "
    "gradscope.record(doctor=True)"
)
UNLABELLED = "the lines that made it show when they run inside of gradscope.record()"


def examine(
    recorder: Recorder | None,
    frame: FrameType,
    root: Any,
    listener: DoctorListener | None = None,
) -> Report:
    """What can be seen of the graph of ``root`` and of the gradient that flows through it.

    Args:
        recorder: what is known of the program; else the active recorder; else only names are known.
        frame: the caller, whose variables give names.
        listener: what a doctor has seen of the calls that made the graph, if one has.

    Raises:
        RootError: when the root carries no gradient history, or has more than one element.
        CaptureError: when an earlier backward call has freed the graph.
    """
    recorder = recorder or Recorder.active or Recorder()
    knows_calls = listener is not None
    listener = listener or DoctorListener(recorder, lambda *_: None)
    with hidden():
        frame = recorder.places.user_frame(frame) or frame
        scopes = Scopes.of_frames(frames_from(frame, recorder.places))
        names = scopes.names(root) if isinstance(root, torch.Tensor) else []
        root = usable_root(root, names[0] if names else "the root", "root", recorder)
        watch = _made(listener, frame, root)
        listener.cuts.mark(watch.sequences, watch.call.roots)
        look_before(listener, watch)
        watch.run()
        watch.measured()
        builder = ReportBuilder(listener, StepLog())
        if watch.failure is not None:
            _refuse_freed(watch, recorder)
            builder.failed(watch.failure, frame, raiser_of(watch.failure, watch, listener))
        case = watched_case(listener, watch)
        if not knows_calls:
            case.notes.append(UNSEEN)
            if not any(map(recorder.span_of, watch.sequences)):
                case.notes.append(UNLABELLED)
        return builder.report(case)


def _made(listener: DoctorListener, frame: FrameType, root: torch.Tensor) -> Capture:
    try:
        gradient = implicit_gradient(root)
    except RootError as error:
        raise RootError(
            error.what, "examine a number that is made of it, such as its sum or its mean"
        ) from None
    call = own_call([root], [gradient], walk([edge_of(root)[0]]), frame)
    return Capture(call, listener.recorder, 0, listener.values_seen)


def _refuse_freed(watch: Capture, recorder: Recorder) -> None:
    """A graph that has done its work is no fault of the program's, and nothing is left of it.

    Raises:
        CaptureError: it has.
    """
    if watch.failure is not None and "a second time" in str(watch.failure):
        hints = explain_failure(watch.failure, watch.walked, recorder)
        hints = hints or ["an earlier backward call has freed it"]
        ways = "call it before backward, or let backward keep the graph: retain_graph=True"
        raise CaptureError(f"backward failed with {described(watch.failure)}", *hints, ways)


def reached(root: torch.Tensor) -> list[torch.Tensor]:
    """The leaves that backward from ``root`` would bring a gradient.

    Raises:
        RootError: when the root carries no gradient history.
    """
    recorder = Recorder.active or Recorder()
    with hidden():
        root = usable_root(root, "the root", "root", recorder)
        walked = walk([edge_of(root)[0]])
        leaves = map(leaf_of, walked.nodes)
        return [leaf for leaf in leaves if leaf is not None]
