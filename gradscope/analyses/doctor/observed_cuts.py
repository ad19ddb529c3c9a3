"""The cuts, and the terms of losses, as rules read them; and a leaf's name."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from gradscope.analyses.doctor.captured_call import CapturedCall
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.lost_terms import living
from gradscope.model.observations import Cut, LossTerm, LostTerm


def cuts_and_terms(
    listener: DoctorListener, case: CapturedCall
) -> tuple[list[Cut], list[LostTerm]]:
    """All places that cut, in the order in which the program came to them, and those inside of
    Functions; and the terms that were lost to the step after them."""
    known = [one for one in listener.cuts.known.values() if one.feeds_graph or not one.inside]
    known.sort(key=lambda one: one.inside)
    numbers = {id(cut): number for number, cut in enumerate(known)}
    of_place = case.origins.of_place

    def names(leaves: Iterable[torch.Tensor]) -> tuple[str, ...]:
        """What the program calls these leaves, each name once; those without one are left out."""
        return tuple(dict.fromkeys(filter(None, (name_of(listener, case, one) for one in leaves))))

    plain = (Cut(*(getattr(cut, name) for name in Cut.__struct_fields__)) for cut in known)
    cuts = list(case.origins.told(plain))
    for cut, told in zip(known, cuts, strict=True):
        told.leaves, told.ways = names(cut.behind()), names(living(cut.learning.values()))
        told.terms = tuple(at for place in cut.terms if (at := of_place(place)) is not None)
        told.sources = tuple(numbers[id(source)] for source in cut.of)
    lost = [
        LostTerm(
            numbers[id(one.cut)],
            of_place(one.place),
            names(living(one.leaves)),
            tuple(LossTerm(of_place(term.place), names(living(term.leaves))) for term in one.terms),
            one.number,
            one.times,
        )
        for one in listener.lost_terms.known
    ]
    return cuts, lost


def name_of(listener: DoctorListener, case: CapturedCall, leaf: torch.Tensor) -> str:
    """What the program calls a leaf, or ""; said to be another one, where a module in sight holds
    something else under that name: as of a model that was loaded in the place of another."""
    name = case.names.of(leaf) or used_name(listener, leaf)
    is_it = case.parameters.get(name, id(leaf)) == id(leaf)
    return name if is_it or not name else f"{name} (another one)"


def used_name(listener: DoctorListener, leaf: torch.Tensor) -> str:
    """The name under which a leaf was used, or ""."""
    return next(
        iter(listener.recorder.leaf_names.of(leaf)), ""
    ) or listener.recorder.modules.parameter_name(leaf)
