"""Why backward failed: buffers freed, tensors changed after they were saved.

Reads what nodes saved and what the recorder remembers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch.autograd.graph import Node as LiveNode

from gradscope.autograd import saved
from gradscope.autograd.nodes import Walked, op_name
from gradscope.autograd.tensors import storage_of
from gradscope.escaping import message
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site

# Torch raises RuntimeError for all of these; its words alone tell them apart.
_FREED = "Trying to backward through the graph a second time"
_CHANGED = "modified by an inplace operation"


class _Broken(NamedTuple):
    """A node that can no longer read some of what it saved, and of which version that was."""

    node: LiveNode
    slots: list[str]
    version: int


def explain_failure(
    failure: BaseException, walked: Walked, recorder: Recorder, freeing: bool = False
) -> list[str]:
    """Sentences on the lines behind a RuntimeError of backward; empty for other errors.

    ``freeing``: the call that failed was one of the program's that would have freed its graph.
    """
    text = message(failure)
    if _FREED in text:
        return _freed(walked, recorder, freeing)
    if _CHANGED in text:
        return [_changed(broken, recorder) for broken in _broken(walked, _CHANGED)]
    return []


def _freed(walked: Walked, recorder: Recorder, freeing: bool) -> list[str]:
    # What the failing call went through before it failed, it has freed itself.
    earlier = recorder.freed.numbers(but_the_last=freeing)
    broken = [one.node for one in _broken(walked, "freed")]
    shared = [node for node in broken if node._sequence_nr() in earlier] or broken
    if not shared:
        return []
    number = shared[0]._sequence_nr()
    call = recorder.freed.by(number) if number in earlier else None
    by = where(call, recorder) if call else "an earlier backward call"
    return [
        f"the saved tensors of this graph were freed by {by}; the first node that both calls share "
        f"is {op_name(shared[0])} ({_made_at(shared[0], recorder)}). Pass retain_graph=True to "
        "the earlier call, or compute that part again."
    ]


def _changed(broken: _Broken, recorder: Recorder) -> str:
    stale = (one for slot in broken.slots for one in saved.unchecked(broken.node, slot))
    memory = {storage_of(tensor) for tensor in stale}
    made = broken.node._sequence_nr()
    changes = recorder.events.changes_since(made, broken.version, memory)
    # Before torch 2.13 nothing tells which memory was saved: then the first change is a guess.
    surely = "" if memory else "probably "
    sentences = [
        f"{surely}{where(change.site, recorder)} changed it in place" for change in changes
    ]
    changed = sentences[0] if sentences else "it was changed in place by a call that was not seen"
    return (
        f"{op_name(broken.node)} saved {' and '.join(broken.slots)} for backward "
        f"({_made_at(broken.node, recorder)}), then {changed}. Use an operation there that makes a "
        "new tensor, or clone the tensor before it is changed."
    )


def _broken(walked: Walked, reason: str) -> Iterator[_Broken]:
    for node in walked.nodes:
        errors = {
            slot: value
            for slot, value in saved.values(node)
            if isinstance(value, RuntimeError) and reason in str(value)
        }
        if errors:
            version = max(map(saved.saved_version, errors.values()))
            yield _Broken(node, list(errors), version)


def _made_at(node: LiveNode, recorder: Recorder) -> str:
    site = recorder.site_of(node._sequence_nr())
    return where(site, recorder) if site else "at a place that was not seen"


def where(site: Site | None, recorder: Recorder) -> str:
    """A place in a sentence: `` `x.mul_(2)` at demo.py:7``."""
    if site is None:
        return "a place outside the program's source"
    origin = recorder.sources.origin(site)
    return f"`{' '.join(origin.expression.split())}` at {origin}"
