"""From what the parts of the examination remember to the plain Observations of a Report."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from gradscope.analyses.doctor import observed_loop
from gradscope.analyses.doctor.captured_call import CapturedCall, Names, Origins
from gradscope.analyses.doctor.carriers import carrier
from gradscope.analyses.doctor.changes import KnownChange
from gradscope.analyses.doctor.compared import functions
from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.observed_cuts import cuts_and_terms
from gradscope.analyses.doctor.observed_parameters import learners
from gradscope.analyses.doctor.raisers import KnownRaiser
from gradscope.autograd.nodes import leaf_of
from gradscope.model.observations import (
    Alteration,
    Birth,
    Broadcast,
    Carried,
    Change,
    Failure,
    Freed,
    Intake,
    Observations,
    Raiser,
    Rounding,
    Step,
)
from gradscope.model.plain import number
from gradscope.model.report import BackwardPass, Graph
from gradscope.recording.places import frames_from


def observations(
    listener: DoctorListener, case: CapturedCall, steps: Iterable[Step], failure: Failure | None
) -> Observations:
    """Everything there is to say, as of now."""
    origins, optimizers = case.origins, listener.optimizers
    places = optimizers.places()
    cuts, lost_terms = cuts_and_terms(listener, case)

    return Observations(
        optimizers=tuple(map(origins.of_place, places)),
        builders=tuple(origins.of_place(observed_loop.builder(listener, at)) for at in places),
        learners=tuple(
            one for one in learners(listener, case, places) if one.history or not case.unfinished
        ),
        cuts=(*cuts, *observed_loop.copies(listener, case)),
        lost_terms=lost_terms,
        wasted_graphs=tuple(map(origins.told, listener.gradient_graphs.wasted.values())),
        changes=case.changes,
        broadcasts=tuple(_broadcasts(listener, case.origins)),
        activities=case.activities,
        saved=case.saved,
        births=case.births,
        roundings=case.roundings,
        intakes=case.intakes,
        freed=case.freed,
        carried=tuple(_carried(listener, case.origins)),
        alterations=(*case.alterations, *map(origins.told, listener.alterations.clipped())),
        steps=tuple(steps),
        skipped_steps=observed_loop.skipped_steps(listener, origins),
        schedules=tuple(map(origins.told, listener.loop_calls.schedules.values())),
        wasted_calls=tuple(map(origins.told, observed_loop.wasted_calls(listener))),
        spoiling_steps=tuple(map(origins.told, observed_loop.spoiling_steps(listener, case))),
        never_stepped=listener.never_stepped,
        remade=tuple(map(origins.told, listener.leaves.made_anew())),
        effects=tuple(map(origins.told, optimizers.effects.known.values())),
        oddities=tuple(
            origins.told(one)
            for one in (*listener.oddities.known.values(), *optimizers.idle.told())
            if one.times
        ),
        functions=tuple(functions(listener.derivatives, case)),
        zeroed=origins.of_place(listener.loop_calls.zeroed_at),
        failure=failure,
        averages=listener.averages,
    )


# ---------------------------------------------------------------- of the whole run


def _broadcasts(listener: DoctorListener, origins: Origins) -> Iterator[Broadcast]:
    for place, one in listener.broadcasts.known.items():
        origin = origins.of_place(place)
        yield Broadcast(origin, one.function, one.shapes, one.result, one.reduced)


def _carried(listener: DoctorListener, origins: Origins) -> Iterator[Carried]:
    for place, known in listener.carries.known.items():
        if known.times:
            origin = origins.of_place(place)
            # Once may be chance, and is seen in a full look only.
            stored = origins.of_site(known.stored) if known.times > 1 else None
            yield Carried(origin, known.function, known.times, known.variable, stored)
    keeper = listener.kept.keeper
    if keeper is not None:
        yield Carried(origins.of_site(keeper.site), "append", keeper.times, keeper.variable)


# ---------------------------------------------------------------- of one graph


def intakes(
    listener: DoctorListener, origins: Origins, names: Names, sequences: dict[int, int]
) -> Iterator[Intake]:
    """The operands without history that were not finite."""
    made_in_order = sorted(sequences)
    for taken in listener.values_seen.taken:
        position = sequences.get(taken.sequence)
        if position is None:
            continue
        tensor, base = taken.tensor(), taken.base()
        name = names.of(tensor) or names.of(base)
        made = origins.of_place(taken.made)
        for known in (tensor, base):
            if made is None and known is not None:
                event = listener.recorder.events.made(known)
                made = None if event is None else origins.of_site(event.site)
        nan, inf = taken.counts
        # Of the nodes of a call this graph need not hold all.
        oldest = made_in_order[bisect_left(made_in_order, taken.first)]
        first = sequences[oldest]
        yield Intake(position, name, nan, inf, taken.size, made, first, taken.row)


def births(listener: DoctorListener, watch: FullCapture, origins: Origins) -> Iterator[Birth]:
    """The lines inside of custom Functions that made the first NaN or infinity."""
    for sequence, birth in listener.births.known.items():
        position = watch.sequences.get(sequence)
        if position is not None:
            yield Birth(position, origins.of_site(birth.site), birth.function)
    for node, birth in watch.flow.births:
        yield Birth(node, origins.of_site(birth.site), birth.function, in_backward=True)


def roundings(listener: DoctorListener, sequences: dict[int, int]) -> Iterator[Rounding]:
    """The numbers that are 0 in the dtype of what they are added to."""
    for sequence, known in listener.rounded.known.items():
        position = sequences.get(sequence)
        if position is not None:
            yield Rounding(position, number(known.value), known.dtype)


def changes(known: Iterable[KnownChange], origins: Origins) -> Iterator[Change]:
    """The tensors changed after they were saved."""
    for change in known:
        origin = origins.of_site(change.site)
        yield Change(change.node, change.slot, origin, change.function, change.silent)


def hooks(
    listener: DoctorListener,
    watch: FullCapture,
    graph: Graph,
    passed: BackwardPass,
    origins: Origins,
) -> Iterator[Alteration]:
    """Hooks of the program that changed a gradient of this pass."""
    for position in sorted({*passed.altered, *watch.flow.replaced, *watch.unfinished}):
        live: Any = watch.walked.nodes[position]
        leaf = leaf_of(live)
        function, place = listener.alterations.hook_on(live._sequence_nr(), leaf)
        # A call that failed leaves sums unfinished, and torch itself casts and copies: only a hook
        # that was seen, or a sum that does not add up, tells of the program's doing.
        if place < 0 and (watch.failure is not None or position not in passed.altered):
            continue
        arrived = [n for n, edge in enumerate(graph.edges) if edge.target == position]
        yield Alteration(
            origin=origins.of_place(place),
            function=function,
            node=position,
            before=passed.on_edge(arrived[0]).norm if len(arrived) == 1 else None,
            after=None if position in watch.unfinished else passed.at(position).norm,
        )


def module_hooks(listener: DoctorListener, origins: Origins) -> Iterator[Alteration]:
    """Hooks that the program has hung on modules, to be named when one of them made a call fail."""
    for place, function in listener.alterations.module_hooks.items():
        yield Alteration(origins.of_place(place), function)


def raiser(known: KnownRaiser | None, origins: Origins, is_shown: bool) -> Raiser | None:
    """Who raised in a call that failed; ``is_shown``: its graph is that of the report."""
    if known is None:
        return None
    return Raiser(
        known.kind,
        known.name,
        known.node if is_shown else None,
        origins.of_site(known.made),
        origins.of_site(known.registered),
        origins.of_site(known.raised),
    )


def freed(listener: DoctorListener, watch: FullCapture, position: int, origins: Origins) -> Freed:
    """The node whose buffers were gone, who freed them, and what led there."""
    recorder = listener.recorder
    site = recorder.freed.by(watch.walked.nodes[position]._sequence_nr())
    frames = list(frames_from(watch.call.frame, recorder.places))
    before = recorder.freed.numbers(but_the_last=True)
    found = carrier(watch.walked, position, before, frames, recorder)
    return Freed(
        position,
        origins.of_site(site),
        found.variable if found else "",
        origins.of_site(found.stored) if found else None,
        origins.of_site(found.taken) if found else None,
    )
