"""From what the parts of the examination remember of the whole run to the plain Observations of a
Report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from gradscope.analyses.doctor import observed_loop
from gradscope.analyses.doctor.captured_call import CapturedCall, Origins
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.observed_cuts import cuts_and_terms
from gradscope.analyses.doctor.observed_parameters import learners
from gradscope.model.observations import (
    Carried,
    Failure,
    Observations,
    Step,
)


def observations(
    listener: DoctorListener, case: CapturedCall, steps: Iterable[Step], failure: Failure | None
) -> Observations:
    """Everything there is to say, as of now."""
    origins, optimizers = case.origins, listener.optimizers
    places = optimizers.places()
    cuts, lost_terms = cuts_and_terms(listener, case)

    return msgspec.structs.replace(
        case.seen,
        optimizers=tuple(map(origins.of_place, places)),
        builders=tuple(origins.of_place(observed_loop.builder(listener, at)) for at in places),
        learners=tuple(
            one for one in learners(listener, case, places) if one.history or not case.unfinished
        ),
        cuts=(*cuts, *observed_loop.copies(listener, case)),
        lost_terms=lost_terms,
        wasted_graphs=tuple(map(origins.told, listener.gradient_graphs.wasted.values())),
        broadcasts=tuple(origins.told(one.told) for one in listener.broadcasts.known.values()),
        carried=tuple(_carried(listener, case.origins)),
        alterations=(*case.seen.alterations, *map(origins.told, listener.alterations.clipped())),
        steps=tuple(steps),
        skipped_steps=observed_loop.skipped_steps(listener, origins),
        schedules=tuple(map(origins.told, listener.loop_calls.schedules.values())),
        wasted_calls=tuple(map(origins.told, observed_loop.wasted_calls(listener))),
        spoiling_steps=tuple(map(origins.told, observed_loop.spoiling_steps(listener, case))),
        never_stepped=listener.never_stepped,
        remade=tuple(map(origins.told, listener.leaves.made_anew())),
        effects=tuple(map(origins.told, optimizers.effects.known.values())),
        mistaken_calls=tuple(
            origins.told(one)
            for one in (*listener.mistaken_calls.known.values(), *optimizers.idle.told())
            if one.times
        ),
        functions=tuple(listener.derivatives.told(case.seen.functions, origins)),
        zeroed=origins.of_place(listener.loop_calls.zeroed_at),
        failure=failure,
        averages=listener.averages,
    )


def _carried(listener: DoctorListener, origins: Origins) -> Iterator[Carried]:
    for known in listener.carried.known.values():
        if known.times:
            # Once may be chance, and is seen in a full look only.
            is_sure = known.times > 1
            yield origins.told(known if is_sure else msgspec.structs.replace(known, stored=None))
    keeper = listener.kept.keeper
    if keeper is not None:
        yield origins.told(keeper)
