"""The cuts, the terms of losses, and what is remembered of the training loop, as rules read them;
and a leaf's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec
import torch

from gradscope.analyses.doctor.captured_call import CapturedCall, Origins
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.autograd.tensors import living
from gradscope.model.loop_observations import SpoilingStep
from gradscope.model.observations import Cut, LostTerm, SkippedSteps
from gradscope.model.plain import number

R = TypeVar("R", Cut, LostTerm)


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
