"""Why the program's own backward failed: buffers freed, or tensors changed after they were
saved."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.capture.assemble import op_name, saved_tensors
from gradscope.capture.events import InPlace
from gradscope.capture.recorder import Recorder
from gradscope.capture.source import Site
from gradscope.capture.walk import Walked

_FREED = "Trying to backward through the graph a second time"
_CHANGED = "modified by an inplace operation"


def explain_failure(failure: BaseException, walked: Walked, recorder: Recorder) -> list[str]:
    """Sentences on the lines behind a RuntimeError of backward; empty for other errors."""
    text = str(failure)
    if _FREED in text:
        return _freed(walked, recorder)
    if _CHANGED in text:
        return stale_notes(walked, recorder)
    return []


def stale_notes(walked: Walked, recorder: Recorder) -> list[str]:
    """For each saved tensor that was changed in place: the line that saved it and the line that
    changed it."""
    notes = []
    for node, slot, raw in _broken(walked, "modified by an inplace operation"):
        saver = _made_at(node, recorder)
        change = _change_of(node, raw, recorder)
        if change is None:
            changed = "it was changed in place by a call that was not seen"
        else:
            changed = f"{_where(change.site, recorder)} changed it in place ({change.function})"
        notes.append(
            f"{op_name(node)} saved its tensor {slot!r} for backward ({saver}), then {changed}. "
            "Use an out-of-place operation there, or clone the tensor before it is changed."
        )
    return notes


def _freed(walked: Walked, recorder: Recorder) -> list[str]:
    broken = next(_broken(walked, "freed"), None)
    if broken is None:
        return []
    node = broken[0]
    call = recorder.freed_by(node._sequence_nr())
    by = _where(call, recorder) if call else "an earlier backward call"
    return [
        f"the saved tensors of this graph were freed by {by}; the first node that both calls share is "
        f"{op_name(node)} ({_made_at(node, recorder)}). Pass retain_graph=True to the earlier call, or "
        "compute that part again."
    ]


def _broken(walked: Walked, reason: str) -> Iterator[tuple[LiveNode, str, object]]:
    for node in walked.nodes:
        for slot, value in saved_tensors(node):
            if isinstance(value, RuntimeError) and reason in str(value):
                yield node, slot, getattr(node, f"_raw_saved_{slot}", None)


def _change_of(node: LiveNode, raw: object, recorder: Recorder) -> InPlace | None:
    """The first change of this memory after the node was made."""
    data = getattr(raw, "data", None)
    made = node._sequence_nr()
    changes = [change for change in recorder.events.in_place if change.sequence > made]
    if isinstance(data, torch.Tensor):
        storage = data.untyped_storage().data_ptr()
        changes = [change for change in changes if change.storage == storage]
    return changes[0] if changes else None


def _made_at(node: LiveNode, recorder: Recorder) -> str:
    span = recorder.span_of(node._sequence_nr())
    return _where(span.site, recorder) if span else "at a place that was not seen"


def _where(site: Site | None, recorder: Recorder) -> str:
    if site is None:
        return "a place outside the program's source"
    origin = recorder.sources.origin(site)
    return f"`{' '.join(origin.expression.split())}` at {origin.file}:{origin.line}"
