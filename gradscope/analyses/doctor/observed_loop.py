"""From what is remembered of the training loop, and of what it learns, to plain Observations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import torch

from gradscope.analyses.doctor.captured_call import CapturedCall, Origins
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.model.loop_observations import (
    Disorder,
    RemadeParameters,
    ReplacedModel,
    ScheduleUse,
    Setting,
    SpoilingStep,
    SpoiltParameter,
    StepEffect,
    WastedCalls,
    WastedGraph,
)
from gradscope.model.observations import Cut, EmptyStep, SkippedSteps
from gradscope.model.plain import number

NameOf = Callable[[torch.Tensor], str]
"""What the program calls a leaf, or ""."""


def copies(listener: DoctorListener, origins: Origins, name_of: NameOf) -> Iterator[Cut]:
    """A copy is a cut, too: its result is a new leaf."""
    for known in listener.copies.known.values():
        names = [name_of(leaf) for leaf, _ in known.originals.living()]
        yield Cut(
            origin=origins.of_place(known.place),
            function="deepcopy",
            reason="function",
            leaves=tuple(dict.fromkeys(name for name in names if name)),
            feeds_graph=known.reached,
            itself=True,
        )


def wasted_graphs(listener: DoctorListener, origins: Origins) -> Iterator[WastedGraph]:
    """Graphs of gradients that an edit of a leaf threw away."""
    for place, known in listener.gradient_graphs.wasted.items():
        yield WastedGraph(origins.of_place(place), known.function, origins.of_place(known.asked))


def empty_steps(listener: DoctorListener, origins: Origins) -> Iterator[EmptyStep]:
    """Steps of an optimizer whose gradients had been dropped."""
    order = listener.learners.optimizers.order
    for (kind, place), known in order.known.items():
        if kind in ("dropped", "part dropped") and known.times > known.fine:
            yield EmptyStep(
                origins.of_place(place),
                known.times,
                origins.of_place(known.beside),
                known.amount,
                in_part=kind == "part dropped",
                too_soon=place in order.too_soon,
            )


def skipped_steps(listener: DoctorListener, origins: Origins) -> SkippedSteps | None:
    """What GradScalers left out, if anything."""
    known = listener.learners.optimizers.calls.scaled_steps
    if known.before is None or known.after is None:
        return None
    op, site = known.overflow or ("", None)
    return SkippedSteps(
        known.steps,
        known.skipped,
        number(known.before),
        number(known.after),
        op,
        origins.of_site(site),
    )


def disorders(listener: DoctorListener, origins: Origins) -> Iterator[Disorder]:
    """All else that was out of order."""
    for (kind, place), known in listener.learners.optimizers.order.known.items():
        if known.times and kind not in ("dropped", "part dropped"):
            yield Disorder(
                kind,
                origins.of_place(place),
                origins.of_place(known.beside),
                known.times,
                known.fine,
                known.amount,
            )


def idle(listener: DoctorListener, origins: Origins) -> Iterator[Disorder]:
    """Optimizers that never step, though what they hold gets gradients."""
    for one in listener.learners.optimizers.order.idle.known():
        # What others step only sends its gradient on to a network whose turn has not come yet.
        calls = one.alone or min(one.calls, one.passed)
        if calls:
            at, made = origins.of_place(one.at), origins.of_place(one.made)
            passed = 0 if one.alone else one.passed
            yield Disorder("optimizer idle", at, made, calls, passed, len(one.ids))


def schedules(listener: DoctorListener, origins: Origins) -> Iterator[ScheduleUse]:
    """Schedulers, and where each was called."""
    for place, one in listener.learners.optimizers.calls.schedules.known.items():
        yield ScheduleUse(origins.of_place(place), origins.of_place(one.called))


def wasted_calls(listener: DoctorListener, origins: Origins) -> Iterator[WastedCalls]:
    """Backward calls of which ``zero_grad`` has left nothing."""
    recorder, optimizers = listener.recorder, listener.learners.optimizers
    for place, known in optimizers.order.wasted.known.items():
        stepped, window = origins.of_place(known.step), max(known.window, 0)
        step, zeroed = recorder.places.site(known.step), recorder.places.site(place)
        behind = step and zeroed and recorder.sources.is_behind(step, zeroed)
        if behind is None:
            behind = optimizers.calls.schedules.is_once_an_epoch(known.step)
        origin = origins.of_place(place)
        yield WastedCalls(origin, stepped, known.dropped, known.used, window, bool(behind))


def replaced_models(listener: DoctorListener, origins: Origins) -> Iterator[ReplacedModel]:
    """Copies and new models that took the place of what an optimizer holds."""
    for place, known in listener.left_behind.known.items():
        yield ReplacedModel(origins.of_place(place), origins.of_place(known.step), known.times)


def spoiling_steps(
    listener: DoctorListener, case: CapturedCall, name_of: NameOf
) -> Iterator[SpoilingStep]:
    """Steps that made NaN or infinity of finite parameters and gradients."""
    for known in listener.learners.optimizers.spoiling.known.values():
        spoilt = []
        for one in known.spoilt:
            tensor = one.tensor()
            spoilt.append(
                SpoiltParameter(
                    "" if tensor is None else name_of(tensor),
                    None if tensor is None else case.leaf_number(tensor),
                    one.dtype,
                    *one.counts,
                    one.size,
                    None if one.gradient is None else number(one.gradient),
                )
            )
        yield SpoilingStep(
            known.optimizer,
            case.origins.of_place(known.place),
            case.origins.of_place(known.made),
            known.calls,
            tuple(spoilt),
            tuple(Setting(name, number(value), zero) for name, value, zero in known.settings),
        )


def builders(
    listener: DoctorListener, origins: Origins, places: Iterable[int]
) -> Iterator[int | None]:
    """For each place that makes an optimizer: where its function is called, if it returns that."""
    recorder, members = listener.recorder, listener.learners.optimizers.members
    for place in places:
        site = recorder.places.site(place)
        origin = None if site is None else recorder.sources.origin(site)
        lines = [] if site is None else recorder.sources.lines_of(site.code)[1]
        words = [] if origin is None else [origin.expression.partition("\n")[0], origin.variable]
        texts = "|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in words if text)
        is_builder = texts and any(re.search(rf"^\s*return\b.*({texts})", line) for line in lines)
        yield origins.of_place(members.caller(place)) if is_builder else None


def remade(listener: DoctorListener, origins: Origins) -> Iterator[RemadeParameters]:
    """Parameters that were made anew for several backward calls."""
    seen = listener.learners.remade
    for place, known in seen.known.items():
        if known.times > 1 and not known.fit:
            alone = seen.fresh == seen.calls
            origin = origins.of_place(place)
            yield RemadeParameters(origin, known.times, seen.calls, known.stepped, alone)


def effects(listener: DoctorListener, origins: Origins) -> Iterator[StepEffect]:
    """What steps changed of parameters in half precision."""
    for place, known in listener.learners.optimizers.effects.known.items():
        yield StepEffect(
            origins.of_place(place),
            known.dtype,
            known.looks,
            known.asked,
            known.still,
            origins.of_place(known.cast),
        )
