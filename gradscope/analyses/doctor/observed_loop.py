"""What is remembered of the training loop, and of what it learns, as Observations tell of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from gradscope.analyses.doctor.captured_call import CapturedCall, Origins
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.observed_cuts import known_name
from gradscope.model.loop_observations import SpoilingStep, WastedCalls
from gradscope.model.observations import Cut, SkippedSteps
from gradscope.model.plain import number


def copies(listener: DoctorListener, case: CapturedCall) -> Iterator[Cut]:
    """A copy is a cut, too: its result is a new leaf."""
    for place, known in listener.leaves.copies.items():
        names = [known_name(listener, case, leaf) for leaf, _ in known.originals.living()]
        yield Cut(
            origin=case.origins.of_place(place),
            function="deepcopy",
            reason="function",
            leaves=tuple(dict.fromkeys(name for name in names if name)),
            feeds_graph=known.reached,
            itself=True,
        )


def skipped_steps(listener: DoctorListener, origins: Origins) -> SkippedSteps | None:
    """What GradScalers left out, if anything."""
    known = listener.loop_calls.scaled_steps
    if known.before is None or known.after is None:
        return None
    op, site = known.overflow or ("", None)
    before, after = number(known.before), number(known.after)
    return SkippedSteps(known.steps, known.skipped, before, after, op, origins.of_site(site))


def wasted_calls(listener: DoctorListener) -> Iterator[WastedCalls]:
    """Backward calls of which ``zero_grad`` has left nothing."""
    recorder, optimizers = listener.recorder, listener.optimizers
    for place, known in optimizers.order.wasted.known.items():
        stepped = -1 if known.stepped is None else known.stepped
        step, zeroed = recorder.places.site(stepped), recorder.places.site(place)
        behind = step and zeroed and recorder.sources.is_behind(step, zeroed)
        known.behind = optimizers.is_once_an_epoch(stepped) if behind is None else bool(behind)
        yield known


def spoiling_steps(listener: DoctorListener, case: CapturedCall) -> Iterator[SpoilingStep]:
    """Steps that made NaN or infinity of finite parameters and gradients."""
    for step in listener.optimizers.spoiling.known.values():
        told = []
        for spoilt in step.parameters:
            tensor = listener.optimizers.spoiling.tensor_of(spoilt)
            if tensor is not None:
                name, leaf = known_name(listener, case, tensor), case.leaf_number(tensor)
                spoilt = msgspec.structs.replace(spoilt, name=name, leaf=leaf)
            told.append(spoilt)
        yield msgspec.structs.replace(step, parameters=tuple(told))


def builder(listener: DoctorListener, place: int) -> int:
    """Where the function is called that makes an optimizer at this place and returns it; -1 for
    none."""
    recorder = listener.recorder
    site = recorder.places.site(place)
    origin = None if site is None else recorder.sources.origin(site)
    lines = [] if site is None else recorder.sources.lines_of(site.code)[1]
    words = [] if origin is None else [origin.expression.partition("\n")[0], origin.variable]
    texts = "|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in words if text)
    is_builder = texts and any(re.search(rf"^\s*return\b.*({texts})", line) for line in lines)
    return listener.optimizers.callers.get(place, -1) if is_builder else -1
