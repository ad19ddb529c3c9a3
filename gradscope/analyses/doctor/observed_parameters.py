"""The tensors that a program holds for learning, as a report tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import torch
from torch.nn.parameter import is_lazy

from gradscope.analyses.doctor.captured_call import CapturedCall, Owner
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.observed_cuts import (
    name_of,
)
from gradscope.autograd.elements import readable
from gradscope.autograd.summary import metadata
from gradscope.graphing.gradient_table import GradientTable
from gradscope.model.observations import (
    TrackedParameter,
)
from gradscope.model.plain import TensorInfo
from gradscope.recording.wrappers import copies, in_flat_shards


def learners(listener: DoctorListener, case: CapturedCall) -> Iterator[TrackedParameter]:
    """The parameters of the run; with their sizes now, where other ranks have them as well."""
    seen = _seen_parameters(listener, case)
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
        0 if copies(tensor) or id(tensor) in spread else table.add_held(tensor)
        for _, tensor in every
    ]
    measured = table.finish()
    for (learner, _), entry in zip(every, entries, strict=True):
        size = measured[entry].norm
        yield learner if size is None else msgspec.structs.replace(learner, size=size)


def _seen_parameters(
    listener: DoctorListener, case: CapturedCall
) -> Iterator[tuple[TrackedParameter, torch.Tensor | None]]:
    known = listener.learners
    optimized = known.optimized()
    # A parameter that two modules share is one thing that learns.
    told: set[int] = set()
    for owner in case.owners:
        # A module that the program only holds was not meant to learn in this run.
        if not any(known.used(one) >= 0 or id(one) in optimized for one, _ in owner.tensors):
            continue
        for tensor, name in owner.tensors:
            if id(tensor) not in told and not (owner.plain and not _is_kept(listener, tensor)):
                told.add(id(tensor))
                yield _learner(listener, case, tensor, name, optimized, owner), tensor
    others = [tensor for tensor, _ in optimized.values()]
    for tensor in [*others, *known.used_leaves()]:
        if id(tensor) not in told and (tensor.requires_grad or id(tensor) in optimized):
            told.add(id(tensor))
            named = name_of(listener, case, tensor)
            yield _learner(listener, case, tensor, named, optimized, None), tensor
    for read in listener.reads.vain.values():
        living = read.tensor()
        info = TensorInfo(read.shape, "float32") if living is None else metadata(living)
        read_in_vain = TrackedParameter(
            name=case.names.of(living) or read.name,
            tensor=info,
            requires_grad=True,
            made=case.origins.of_place(read.made),
            history=read.op,
            wanted=read.wanted,
            asked=case.origins.of_place(read.asked),
            # What torch itself has made there, `jacobian` of what it is given, is no part that
            # the program took.
            result=case.origins.of_place(read.result) if read.made == read.asked else None,
        )
        yield read_in_vain, None


def _is_kept(listener: DoctorListener, leaf: torch.Tensor) -> bool:
    """Whether a leaf that a module keeps is there to be learned: the program goes on using it, and
    does nothing with its gradient."""
    return listener.learners.is_reached_often(leaf) and not listener.reads.is_read(leaf)


def _is_stray(listener: DoctorListener, leaf: torch.Tensor) -> bool:
    """Whether the program made this Parameter and gave it to no module."""
    known = listener.learners
    made = listener.parameters.made(leaf) >= 0 and known.born(leaf) < 0
    return made and not listener.reads.is_read(leaf) and not leaf._version


def _is_zero(tensor: torch.Tensor) -> bool:
    # A bias may be frozen at zero on purpose.
    return tensor.dim() > 1 and readable(tensor) and not bool(tensor.detach().any())


def _learner(
    listener: DoctorListener,
    case: CapturedCall,
    tensor: torch.Tensor,
    name: str,
    optimized: dict[int, tuple[torch.Tensor, bool]],
    owner: Owner | None,
) -> TrackedParameter:
    known = listener.learners
    held = optimized.get(id(tensor))
    thawed = known.thawed(tensor)
    made = known.born(tensor)
    made = made if made >= 0 else listener.parameters.made(tensor)
    if owner is not None and owner.module is not None:
        # Not in the constructor of the layer, which is in order, but where that was called.
        outside = known.made_outside(tensor, owner.module)
        made = outside if outside >= 0 else made
    event = listener.recorder.events.made(tensor) if made < 0 else None
    numbers = tuple(case.held_by.get(id(tensor), ()))
    once = -1 if numbers else known.optimizers.members.held_once(tensor)
    return TrackedParameter(
        name=name or name_of(listener, case, tensor) or known.class_name(tensor),
        tensor=metadata(tensor),
        requires_grad=tensor.requires_grad,
        # A module that was made after the reported call is in no sight of that.
        in_module=owner is not None or known.born(tensor) >= 0,
        in_optimizer=(held is not None) if known.has_optimizer else None,
        leaf=case.leaf_number(tensor),
        used=case.origins.of_place(known.used(tensor)),
        made=case.origins.of_site(event.site) if event else case.origins.of_place(made),
        initialised=case.origins.of_place(known.initialised(tensor)),
        recorded=known.is_recorded(tensor),
        derived=known.is_derived(tensor),
        reached=known.is_reached(tensor),
        # Before any optimizer has stepped they all wait, which says nothing of this one.
        waiting=held is not None and not held[1] and known.optimizers.any_stepped,
        loose=owner.loose if owner is not None else _is_stray(listener, tensor),
        wanted=listener.reads.is_wanted(tensor),
        held_by=numbers,
        held_once=case.origins.of_place(once),
        gone=held is not None and owner is None and not case.names.of(tensor),
        late=known.births.is_late(tensor) and not listener.reads.is_read(tensor),
        thawed=thawed is not None,
        lazy=is_lazy(tensor),
        thawed_at=None if thawed is None else case.origins.of_place(thawed),
        loaded=known.is_loaded(tensor),
        evaluated=id(tensor) in case.evaluated,
        handled=listener.reads.is_read(tensor) or known.births.is_edited(tensor),
        zero=held is not None and not tensor.requires_grad and _is_zero(tensor),
        root=next((at for at, one in enumerate(case.owners) if one is owner), None),
    )
