"""A case from a backward call that was watched."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradscope.analyses.doctor import observed
from gradscope.analyses.doctor.captured_call import (
    CapturedCall,
    Names,
    Origins,
    loose_modules,
    owners_of,
)
from gradscope.analyses.doctor.changes import KnownChange
from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.saved_values import freed_slots
from gradscope.escaping import message
from gradscope.model.observations import Activity, Mismatch
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from


@dataclass
class Before:
    """What was seen of a graph before its buffers were freed."""

    changed: list[KnownChange] = field(default_factory=list)
    active: list[Activity] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)


def watched_case(listener: DoctorListener, watch: FullCapture, before: Before) -> CapturedCall:
    """Everything about one call and its graph, as plain data."""
    scopes = Scopes.of_frames(frames_from(watch.call.frame, listener.recorder.places))
    assembler, graph = watch.described(scopes)
    modules = assembler.module_names
    origins = Origins(assembler.origins(), listener.recorder.sources, listener.recorder.places)
    passed = watch.passed(
        graph, origins.of_site(listener.recorder.places.site_of(watch.call.frame))
    )
    names = Names(scopes, modules)
    changed, gone = before.changed, None
    if watch.failure is not None and not changed:
        changed = listener.changes.in_graph(watch.walked, thorough=True)
    if watch.failure is not None and "a second time" in message(watch.failure):
        gone = freed_slots(watch.walked, listener.recorder.freed.before_the_last())
    alterations = list(observed.hooks(listener, watch, graph, passed, origins))
    if watch.failure is not None:
        alterations.extend(observed.module_hooks(listener, origins))
    met = ((module, modules.path(place)) for module, place in listener.recorder.modules.met())
    return CapturedCall(
        graph=observed.with_counts(listener, graph, watch.sequences),
        origins=origins,
        names=names,
        owners=owners_of(modules, loose_modules(modules, met)),
        leaf_numbers=watch.leaf_numbers(),
        held=[*watch.leaves, *listener.learners.used_leaves()],
        passes=(passed,),
        changes=tuple(observed.changes(changed, origins)),
        activities=tuple(before.active),
        saved=tuple(watch.flow.saved),
        intakes=tuple(observed.intakes(listener, origins, names, watch.sequences)),
        freed=() if gone is None else (observed.freed(listener, watch, gone, origins),),
        mismatches=tuple(before.mismatches),
        alterations=tuple(alterations),
    )
