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
from gradscope.analyses.doctor.saved_values import freed_slots
from gradscope.analyses.doctor.tap import DoctorRecorder
from gradscope.escaping import message
from gradscope.model.checks import CallCheck
from gradscope.model.observations import Activity
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from


@dataclass
class Before:
    """What was seen of a graph before its buffers were freed."""

    changed: list[KnownChange] = field(default_factory=list)
    active: list[Activity] = field(default_factory=list)
    functions: list[CallCheck] = field(default_factory=list)

    @property
    def has_trouble(self) -> bool:
        """Whether backward cannot be right."""
        return bool(self.changed) or any(one.verdict == "wrong" for one in self.functions)


def watched_case(tap: DoctorRecorder, watch: FullCapture, before: Before) -> CapturedCall:
    """Everything about one call and its graph, as plain data."""
    scopes = Scopes.of_frames(frames_from(watch.call.frame, tap.places))
    assembler, graph = watch.described(scopes)
    modules = assembler.module_names
    origins = Origins(assembler.origins(), tap.sources, tap.places)
    passed = watch.flowed(graph, origins.of_site(tap.places.site_of(watch.call.frame)))
    names = Names(scopes, modules)
    changed, gone = before.changed, None
    if watch.failure is not None and not changed:
        changed = tap.changes.in_graph(watch.walked, thorough=True)
    if watch.failure is not None and "a second time" in message(watch.failure):
        gone = freed_slots(watch.walked, tap.freed.before_the_last())
    alterations = list(observed.hooks(tap, watch, graph, passed, origins))
    if watch.failure is not None:
        alterations.extend(observed.module_hooks(tap, origins))
    met = ((module, modules.path(place)) for module, place in tap.modules.met())
    return CapturedCall(
        graph=observed.with_counts(tap, graph, watch.sequences),
        origins=origins,
        names=names,
        owners=owners_of(modules, loose_modules(modules, met)),
        leaf_numbers=watch.leaf_numbers(),
        held=[*watch.leaves, *tap.learners.used_leaves()],
        passes=(passed,),
        changes=tuple(observed.changes(changed, origins)),
        activities=tuple(before.active),
        saved=tuple(watch.flow.saved),
        intakes=tuple(observed.intakes(tap, origins, names, watch.sequences)),
        freed=() if gone is None else (observed.freed(tap, watch, gone, origins),),
        functions=tuple(before.functions),
        alterations=tuple(alterations),
    )
