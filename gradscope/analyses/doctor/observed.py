"""From what the parts of the examination remember of the whole run to the plain Observations of a
Report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import torch

from gradscope.analyses.doctor import observed_loop
from gradscope.analyses.doctor.captured_call import CapturedCall, Origins
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.observed_cuts import (
    cuts,
    inner_uses,
    lost_terms,
    used_name,
)
from gradscope.analyses.doctor.observed_parameters import learners
from gradscope.model.observations import (
    Alteration,
    Carried,
    Failure,
    Observations,
    Oddity,
    Step,
)
from gradscope.model.plain import number


def observations(
    listener: DoctorListener, case: CapturedCall, steps: Iterable[Step], failure: Failure | None
) -> Observations:
    """Everything there is to say, as of now."""
    places, case.held_by = listener.learners.optimizers.members.table()
    case.evaluated = listener.eval_modes.parameters()

    def name_of(leaf: torch.Tensor) -> str:
        return case.names.of(leaf) or used_name(listener, leaf)

    return msgspec.structs.replace(
        case.seen,
        optimizers=tuple(map(case.origins.of_place, places)),
        builders=tuple(observed_loop.builders(listener, case.origins, places)),
        learners=tuple(
            one for one in learners(listener, case) if one.history or not case.unfinished
        ),
        cuts=(
            *cuts(listener, case),
            *observed_loop.copies(listener, case.origins, name_of),
            *inner_uses(listener, case),
        ),
        lost_terms=tuple(lost_terms(listener, case)),
        wasted_graphs=tuple(observed_loop.wasted_graphs(listener, case.origins)),
        broadcasts=tuple(case.origins.told(one.told) for one in listener.broadcasts.known.values()),
        carried=tuple(_carried(listener, case.origins)),
        alterations=(*case.seen.alterations, *_clips(listener, case.origins)),
        steps=tuple(steps),
        empty_steps=tuple(observed_loop.empty_steps(listener, case.origins)),
        skipped_steps=observed_loop.skipped_steps(listener, case.origins),
        disorders=(
            *observed_loop.disorders(listener, case.origins),
            *observed_loop.idle(listener, case.origins),
        ),
        schedules=tuple(observed_loop.schedules(listener, case.origins)),
        wasted_calls=tuple(observed_loop.wasted_calls(listener, case.origins)),
        replaced_models=tuple(observed_loop.replaced_models(listener, case.origins)),
        spoiling_steps=tuple(observed_loop.spoiling_steps(listener, case, name_of)),
        never_stepped=listener.never_stepped,
        remade=tuple(observed_loop.remade(listener, case.origins)),
        effects=tuple(observed_loop.effects(listener, case.origins)),
        oddities=tuple(_oddities(listener, case.origins)),
        functions=tuple(listener.derivatives.told(case.seen.functions, case.origins)),
        zeroed=case.origins.of_place(listener.learners.optimizers.calls.zeroed_at),
        failure=failure,
        averages=listener.averages,
    )


def _oddities(listener: DoctorListener, origins: Origins) -> Iterator[Oddity]:
    yield from listener.oddities.told(origins)
    for place, amount in listener.learners.optimizers.members.twice.items():
        yield Oddity("listed twice", origins.of_place(place), 1, (amount,))


def _carried(listener: DoctorListener, origins: Origins) -> Iterator[Carried]:
    for known in listener.carries.known.values():
        if known.times:
            # Once may be chance, and is seen in a full look only.
            is_sure = known.times > 1
            yield origins.told(known if is_sure else msgspec.structs.replace(known, stored=None))
    keeper = listener.kept.keeper
    if keeper is not None:
        yield origins.told(keeper)


def _clips(listener: DoctorListener, origins: Origins) -> Iterator[Alteration]:
    for place, clip in listener.alterations.clips.items():
        before = None if clip.before is None else number(clip.before)
        after = None if clip.after is None else number(clip.after)
        least = listener.alterations.least.get(place)
        yield Alteration(
            origins.of_place(place),
            clip.function,
            before=before,
            after=after,
            call=clip.call,
            least=None if least is None else number(least),
        )
