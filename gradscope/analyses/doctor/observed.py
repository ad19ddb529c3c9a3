"""From what the parts of the examination remember of the whole run to the plain Observations of a
Report, with the tensors that a program holds for learning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from gradscope.analyses.doctor.captured_call import CapturedCall, Origins, Owner
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.training.leaves import OFTEN, KnownLeaf, KnownOptimizer
from gradscope.autograd.summary import metadata
from gradscope.autograd.tensors import living
from gradscope.graphing.gradient_table import GradientTable
from gradscope.model.loop_observations import SpoilingStep
from gradscope.model.observations import (
    Carried,
    Cut,
    Failure,
    LostTerm,
    Observations,
    SkippedSteps,
    Step,
    TrackedParameter,
)
from gradscope.model.plain import number
from gradscope.model.studies import CallCheck
from gradscope.recording.wrappers import copies, in_flat_shards, parts_of

R = TypeVar("R", Cut, LostTerm)


def learners(
    listener: DoctorListener, case: CapturedCall, places: Sequence[int]
) -> Iterator[TrackedParameter]:
    """The parameters of the run, with the ``places`` of their optimizers; with their sizes now,
    where other ranks have them as well."""
    seen = _seen_parameters(listener, case, places)
    return _sized(seen, listener) if listener.is_shared else (one for one, _ in seen)


def _sized(
    learners: Iterable[tuple[TrackedParameter, torch.Tensor | None]], listener: DoctorListener
) -> Iterator[TrackedParameter]:
    every = list(learners)
    # Together, so that a device is waited for once.
    table = GradientTable(limit=0)
    # Of a tensor that is spread over ranks each holds another part.
    spread = in_flat_shards(listener.recorder.modules.living_roots())
    entries = [
        0 if copies(tensor) or id(tensor) in spread else table.add(tensor) for _, tensor in every
    ]
    measured = table.finish()
    for (learner, _), entry in zip(every, entries, strict=True):
        size = measured[entry].norm
        yield learner if size is None else msgspec.structs.replace(learner, size=size)


def _seen_parameters(
    listener: DoctorListener, case: CapturedCall, places: Sequence[int]
) -> Iterator[tuple[TrackedParameter, torch.Tensor | None]]:
    leaves = listener.leaves
    optimized = leaves.optimized()
    run = _Run(
        listener,
        case,
        optimized,
        {place: number for number, place in enumerate(places)},
        set(_in_eval_mode(listener.recorder.modules.living_roots())),
    )
    # A parameter that two modules share is one thing that learns.
    told: set[int] = set()
    for owner in case.owners:
        # A module that the program only holds was not meant to learn in this run.
        if not any(leaves.get(one).used >= 0 or id(one) in optimized for one, _ in owner.tensors):
            continue
        for tensor, name in owner.tensors:
            if id(tensor) not in told and not (owner.plain and not _is_kept(leaves.get(tensor))):
                told.add(id(tensor))
                yield run.learner(tensor, name, owner), tensor
    for tensor in [*(tensor for tensor, _ in optimized.values()), *leaves.used()]:
        if id(tensor) not in told and (tensor.requires_grad or id(tensor) in optimized):
            told.add(id(tensor))
            yield run.learner(tensor, name_of(listener, case, tensor), None), tensor
    for reference, read in listener.reads.vain.values():
        named = case.origins.told(read)
        named.name = case.names.of(reference()) or named.name
        yield named, None


def _in_eval_mode(roots: Iterable[nn.Module]) -> Iterator[int]:
    """The ids of the parameters that modules in eval mode hold."""
    for module in (module for root in roots for _, module in parts_of(root)):
        # A class of the program may have made a property of it.
        if not vars(module).get("training", True):
            yield from map(id, vars(module).get("_parameters", {}).values())


def _is_kept(known: KnownLeaf) -> bool:
    """Whether a leaf that a module keeps is there to be learned: the program goes on using it, and
    does nothing with its gradient."""
    return known.reached >= OFTEN and not known.read


def _is_stray(known: KnownLeaf, leaf: torch.Tensor) -> bool:
    """Whether the program made this Parameter and gave it to no module."""
    return known.made >= 0 > known.born and not known.read and not leaf._version


class _Run(NamedTuple):
    """What the parameters of a run are told of with: those in optimizers, by id; the numbers of the
    places that made optimizers; the ids of those in eval mode."""

    listener: DoctorListener
    case: CapturedCall
    optimized: Mapping[int, tuple[torch.Tensor, KnownOptimizer]]
    numbers: Mapping[int, int]
    evaluated: Collection[int]

    def learner(self, tensor: torch.Tensor, name: str, owner: Owner | None) -> TrackedParameter:
        """Tell what is known of one parameter."""
        listener, case, leaves = self.listener, self.case, self.listener.leaves
        known, of_place = leaves.get(tensor), case.origins.of_place
        _, optimizer = self.optimized.get(id(tensor), (None, None))
        has_stepped = listener.optimizers.any_stepped
        is_waiting = optimizer is not None and not optimizer.stepped and has_stepped
        made = known.place
        if owner is not None and owner.module is not None:
            # Not in the constructor of the layer, which is in order, but where that was called.
            outside = leaves.made_outside(tensor, owner.module)
            made = outside if outside >= 0 else made
        event = listener.recorder.events.made(tensor) if made < 0 else None
        held_by = sorted(self.numbers[at] for at in known.holders if at in self.numbers)
        is_thawed = known.thawed is not None and tensor.requires_grad
        return TrackedParameter(
            name=name or name_of(listener, case, tensor) or known.name,
            tensor=metadata(tensor),
            requires_grad=tensor.requires_grad,
            # A module that was made after the reported call is in no sight of that.
            in_module=owner is not None or known.born >= 0,
            in_optimizer=optimizer is not None if has_stepped or self.optimized else None,
            leaf=case.leaf_number(tensor),
            used=of_place(known.used),
            made=case.origins.of_site(event.site) if event else of_place(made),
            initialised=of_place(known.filled),
            recorded=known.recorded,
            derived=known.derived,
            reached=known.reached > 0,
            once=known.reached == 1,
            # Before any optimizer has stepped they all wait, which says nothing of this one.
            waiting=is_waiting,
            loose=_is_stray(known, tensor) if owner is None else owner.loose,
            wanted=known.wanted,
            # What has no name is held by a library, as the parts of a sharded parameter are.
            kept=bool(name) and _is_kept(known) and not leaves.is_edited(tensor),
            held_by=tuple(held_by),
            held_once=None if held_by else of_place(max(known.holders, default=-1)),
            gone=optimizer is not None and owner is None and not case.names.of(tensor),
            late=leaves.is_late(tensor) and not known.read,
            thawed=is_thawed,
            lazy=is_lazy(tensor),
            thawed_at=None if known.thawed is None else of_place(known.thawed),
            loaded=known.loaded,
            evaluated=id(tensor) in self.evaluated,
            handled=known.read or leaves.is_edited(tensor),
            root=next((at for at, one in enumerate(case.owners) if one is owner), None),
        )


def _checked(listener: DoctorListener, case: CapturedCall, origins: Origins) -> Iterable[CallCheck]:
    found = listener.derivatives
    return () if found is None else found.told(case.seen.functions, origins)


def observations(
    listener: DoctorListener, case: CapturedCall, steps: Iterable[Step], failure: Failure | None
) -> Observations:
    """Everything there is to say, as of now."""
    origins, optimizers = case.origins, listener.optimizers
    places = optimizers.places()
    cuts, lost_terms = cuts_and_terms(listener, case)
    terms = listener.compared_terms
    return msgspec.structs.replace(
        case.seen,
        optimizers=tuple(map(origins.of_place, places)),
        learners=tuple(
            one for one in learners(listener, case, places) if one.history or not case.unfinished
        ),
        cuts=(*cuts, *cut_copies(listener, case)),
        lost_terms=lost_terms,
        faint_terms=tuple(map(origins.told, terms.faint if terms else ())),
        cancelling_terms=tuple(map(origins.told, terms.cancelling if terms else ())),
        broadcasts=tuple(map(origins.told, listener.broadcasts.known.values())),
        carried=tuple(_carried(listener, case.origins)),
        alterations=(*case.seen.alterations, *map(origins.told, listener.alterations.clipped())),
        steps=tuple(steps),
        skipped_steps=skipped_steps(listener, origins),
        spoiling_steps=tuple(map(origins.told, spoiling_steps(listener, case))),
        never_stepped=listener.never_stepped,
        effects=tuple(map(origins.told, optimizers.effects.known.values())),
        mistaken_calls=tuple(
            origins.told(one) for one in listener.mistaken_calls.known.values() if one.times
        ),
        functions=tuple(_checked(listener, case, origins)),
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


def cuts_and_terms(
    listener: DoctorListener, case: CapturedCall
) -> tuple[tuple[Cut, ...], tuple[LostTerm, ...]]:
    """All places that cut, in the order in which the program came to them, and those inside of
    Functions; and the terms that were lost to the step after them."""
    known = [one for one in listener.cuts.known.values() if one.feeds_graph or not one.inside]
    known.sort(key=lambda one: one.inside)

    def told(kind: type[R], records: Iterable[R]) -> tuple[R, ...]:
        """These without what only the run needs."""
        names = kind.__struct_fields__
        plain = (kind(*(getattr(one, name) for name in names)) for one in records)
        return tuple(map(case.origins.told, plain))

    def names(leaves: Iterable[torch.Tensor]) -> tuple[str, ...]:
        """What the program calls these leaves, each name once; those without one are left out."""
        return tuple(dict.fromkeys(filter(None, (name_of(listener, case, one) for one in leaves))))

    cuts: dict[Cut, Cut] = dict(zip(known, told(Cut, known), strict=True))
    for of, cut in zip(known, cuts.values(), strict=True):
        cut.leaves, cut.ways = names(of.behind()), names(living(of.learning.values()))
    losses = listener.lost_terms.known
    lost = told(LostTerm, losses)
    for term, loss in zip(lost, losses, strict=True):
        term.cut, term.leaves = cuts[loss.cut], names(living(loss.starved))
    return tuple(cuts.values()), lost


def name_of(listener: DoctorListener, case: CapturedCall, leaf: torch.Tensor) -> str:
    """What the program calls a leaf, or ""; said to be another one, where a module in sight holds
    something else under that name: as of a model that was loaded in the place of another."""
    name = known_name(listener, case, leaf)
    is_it = case.parameters.get(name, id(leaf)) == id(leaf)
    return name if is_it or not name else f"{name} (another one)"


def known_name(listener: DoctorListener, case: CapturedCall, leaf: torch.Tensor) -> str:
    """What the program calls a leaf, or else called it when it was used, or ""."""
    recorder = listener.recorder
    used = next(iter(recorder.leaf_names.of(leaf)), "")
    return case.names.of(leaf) or used or recorder.modules.parameter_name(leaf)


def cut_copies(listener: DoctorListener, case: CapturedCall) -> Iterator[Cut]:
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
