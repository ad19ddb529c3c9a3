"""From what the parts of the examination remember of the whole run to the plain Observations of a
Report, with the tensors that a program holds for learning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import msgspec
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from gradscope.analyses.doctor.captured_call import CapturedCall, Origins, Owner
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.training.leaves import KnownLeaf, KnownOptimizer
from gradscope.autograd.summary import metadata
from gradscope.autograd.tensors import living
from gradscope.graphing.gradient_table import GradientTable
from gradscope.model.observations import (
    Cut,
    Failure,
    LostTerm,
    Observations,
    SkippedSteps,
    SpoilingStep,
    Step,
    TrackedParameter,
)
from gradscope.model.plain import Number, number
from gradscope.recording.wrappers import copies, in_flat_shards, parts_of


class _Learner(NamedTuple):
    """A tensor that is held for learning, what it is called, by which module it is known, and its
    size now, where other ranks have it as well."""

    tensor: torch.Tensor
    name: str
    owner: Owner | None
    size: Number | None = None


def learners(listener: DoctorListener, case: CapturedCall) -> Iterator[TrackedParameter]:
    """The parameters of the run, and what was taken for one."""
    leaves, roots = listener.leaves, list(listener.recorder.modules.living_roots())
    own = leaves.own_optimizers()
    # A parameter that two modules share is one thing that learns.
    found: dict[int, _Learner] = {}
    for owner in case.owners:
        # A module that the program only holds was not meant to learn in this run.
        known = [(leaves.get(tensor), tensor, name) for tensor, name in owner.tensors]
        if any(one.used is not None or one.optimizer in own for one, _, _ in known):
            for one, tensor, name in known:
                if not owner.plain or _is_kept(one):
                    found.setdefault(id(tensor), _Learner(tensor, name, owner))
    held = [tensor for tensor, one in leaves.living() if one.optimizer in own]
    for tensor in [*held, *(one for one in leaves.used() if one.requires_grad)]:
        if id(tensor) not in found:
            found[id(tensor)] = _Learner(tensor, name_of(listener, case, tensor), None)
    every = list(found.values())
    evaluated = set(_in_eval_mode(roots))
    for learner in _sized(every, roots) if listener.is_shared else every:
        yield _told(listener, case, learner, own, evaluated)
    vain = (
        case.origins.told(read, name=case.names.get(reference()) or read.name)
        for reference, read in leaves.vain.values()
    )
    # One may have been read under several names.
    yield from {(one.made, one.name): one for one in vain}.values()


def _sized(every: list[_Learner], roots: Iterable[nn.Module]) -> Iterator[_Learner]:
    # Together, so that a device is waited for once.
    table = GradientTable(limit=0)
    # Of a tensor that is spread over ranks each holds another part.
    spread = in_flat_shards(roots)
    entries = [
        0 if copies(one.tensor) or id(one.tensor) in spread else table.add(one.tensor)
        for one in every
    ]
    measured = table.finish()
    return (one._replace(size=measured[at].norm) for one, at in zip(every, entries, strict=True))


def _in_eval_mode(roots: Iterable[nn.Module]) -> Iterator[int]:
    """The ids of the parameters that modules in eval mode hold."""
    for module in (module for root in roots for _, module in parts_of(root)):
        # A class of the program may have made a property of it.
        if not vars(module).get("training", True):
            yield from map(id, vars(module).get("_parameters", {}).values())


def _is_kept(known: KnownLeaf) -> bool:
    """Whether a leaf that a module keeps is there to be learned: the program goes on using it, and
    does nothing with its gradient."""
    return known.reached and not (known.once or known.read)


def _is_stray(known: KnownLeaf, leaf: torch.Tensor) -> bool:
    """Whether the program made this Parameter and gave it to no module."""
    is_made = known.made is not None and known.born is None
    return is_made and not known.read and not leaf._version


def _told(
    listener: DoctorListener,
    case: CapturedCall,
    told: _Learner,
    own: Collection[KnownOptimizer],
    evaluated: Collection[int],
) -> TrackedParameter:
    """What is known of one parameter.

    Args:
        listener, case: as for :func:`observations`.
        told: the parameter.
        own: the optimizers of the program.
        evaluated: the ids of those in eval mode.
    """
    tensor, name, owner, size = told
    leaves = listener.leaves
    known, at = leaves.get(tensor), case.origins.of
    optimizer = known.optimizer if known.optimizer in own else None
    has_stepped = listener.optimizers.any_stepped
    made = at(known.made if known.born is None else known.born)
    if owner is not None and owner.module is not None:
        # Not in the constructor of the layer, which is in order, but where that was called.
        outside = at(leaves.made_outside(tensor, owner.module))
        made = made if outside is None else outside
    event = listener.recorder.events.made(tensor) if made is None else None
    held_by = tuple(at(one) for one in listener.optimizers.places() if one in known.holders)
    return case.origins.told(
        known,
        name=name or name_of(listener, case, tensor) or known.name,
        tensor=metadata(tensor),
        requires_grad=tensor.requires_grad,
        # A module that was made after the reported call is in no sight of that.
        in_module=owner is not None or known.born is not None,
        in_optimizer=optimizer is not None if has_stepped or own else None,
        orphan=owner is None and known.born is not None and optimizer is not None,
        leaf=case.leaf_numbers.get(tensor),
        made=at(event.site) if event else made,
        # Before any optimizer has stepped they all wait, which says nothing of this one.
        waiting=optimizer is not None and not optimizer.stepped and has_stepped,
        loose=_is_stray(known, tensor) if owner is None else owner.loose,
        # What has no name is held by a library, as the parts of a sharded parameter are.
        kept=bool(name) and _is_kept(known) and not leaves.is_edited(tensor),
        held_by=held_by,
        held_once=None if held_by else at(max(known.holders, default=-1)),
        late=leaves.is_late(tensor) and not known.read,
        thawed=known.thawed and tensor.requires_grad,
        lazy=is_lazy(tensor),
        evaluated=id(tensor) in evaluated,
        handled=known.read or leaves.is_edited(tensor),
        root=next((n for n, one in enumerate(case.owners) if one is owner), None),
        size=size,
    )


def observations(
    listener: DoctorListener, case: CapturedCall, steps: Iterable[Step], failure: Failure | None
) -> Observations:
    """Everything there is to say, as of now."""
    origins, optimizers = case.origins, listener.optimizers
    cuts, lost_terms = cuts_and_terms(listener, case)
    derivatives = listener.derivatives
    return msgspec.structs.replace(
        case.seen,
        optimizers=tuple(map(origins.of, optimizers.places())),
        learners=tuple(
            one for one in learners(listener, case) if one.history or not case.unfinished
        ),
        cuts=tuple(cuts),
        lost_terms=tuple(lost_terms),
        broadcasts=tuple(map(origins.told, listener.broadcasts.known.values())),
        carried=tuple(map(origins.told, listener.carried.known.values())),
        steps=tuple(steps),
        skipped_steps=skipped_steps(listener, origins),
        spoiling_steps=tuple(spoiling_steps(listener, case)),
        never_stepped=listener.never_stepped,
        effects=tuple(map(origins.told, optimizers.effects.known.values())),
        mistaken_calls=tuple(
            origins.told(one) for one in optimizers.order.odd.known.values() if one.times
        ),
        functions=tuple(derivatives.told(case.seen.functions, origins) if derivatives else ()),
        zeroed=origins.of(listener.loop_calls.zeroed_at),
        failure=failure,
        averages=listener.averages,
    )


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
    return case.names.get(leaf) or used or recorder.modules.parameter_name(leaf)


def cuts_and_terms(
    listener: DoctorListener, case: CapturedCall
) -> tuple[list[Cut], list[LostTerm]]:
    """All places that cut, in the order in which the program came to them, and then those inside of
    Functions; and the terms that were lost to the step after them."""

    def names(leaves: Iterable[torch.Tensor]) -> tuple[str, ...]:
        """What the program calls these leaves, each name once; those without one are left out."""
        return tuple(dict.fromkeys(filter(None, (name_of(listener, case, one) for one in leaves))))

    cuts: dict[Cut, Cut] = {}
    known = (one for one in listener.cuts.known.values() if one.feeds_graph or not one.inside)
    for cut in sorted(known, key=lambda one: one.inside):
        # A report holds no tensor.
        cuts[cut] = case.origins.told(cut, first=None, leaves=names(cut.behind()))
    lost = [
        case.origins.told(term, cut=cuts[term.cut], leaves=names(living(term.starved)))
        for term in listener.lost_terms.known
    ]
    return list(cuts.values()), list[LostTerm](lost)


def skipped_steps(listener: DoctorListener, origins: Origins) -> SkippedSteps | None:
    """What GradScalers left out, if anything."""
    known = listener.loop_calls.scaled_steps
    if known.before is None or known.after is None:
        return None
    op, site = known.overflow or ("", None)
    before, after = number(known.before), number(known.after)
    return SkippedSteps(known.steps, known.skipped, before, after, op, origins.of(site))


def spoiling_steps(listener: DoctorListener, case: CapturedCall) -> Iterator[SpoilingStep]:
    """Steps that made NaN or infinity of finite parameters and gradients."""
    for step in listener.optimizers.spoiling.known.values():
        told = []
        for spoilt in step.parameters:
            tensor = spoilt.tensor()
            if tensor is not None:
                name, leaf = known_name(listener, case, tensor), case.leaf_numbers.get(tensor)
                spoilt = msgspec.structs.replace(spoilt, name=name, leaf=leaf)
            told.append(spoilt)
        yield case.origins.told(step, parameters=tuple(told))
