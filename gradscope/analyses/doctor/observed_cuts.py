"""From what is remembered of cuts, and of terms of losses, to plain data; and a leaf's name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

from gradscope.analyses.doctor.captured_call import CapturedCall
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.lost_terms import living
from gradscope.model.observations import Cut, LossTerm, LostTerm


def cuts(listener: DoctorListener, case: CapturedCall) -> Iterator[Cut]:
    """All places that cut, in the order in which the program came to them."""
    numbers = {id(cut): number for number, cut in enumerate(listener.cuts.known.values())}
    for cut in listener.cuts.known.values():
        yield Cut(
            origin=case.origins.of_place(cut.place),
            function=cut.function,
            reason=cut.reason,
            leaves=_names(listener, case, cut.behind()),
            feeds_graph=cut.fed,
            refused=cut.refused,
            root=cut.root,
            itself=cut.itself,
            switched=case.origins.of_place(cut.switched_at),
            then=cut.then,
            summand=cut.summand,
            scalar=cut.scalar,
            within=cut.within,
            twin=cut.twin,
            ways=_names(listener, case, living(cut.ways.values())),
            astray=bool(cut.astray),
            ungiven=cut.ungiven,
            terms=tuple(
                origin
                for place in cut.terms
                if (origin := case.origins.of_place(place)) is not None
            ),
            made=case.origins.of_place(cut.made),
            equal=cut.equal,
            shared=cut.shared,
            sources=tuple(numbers[id(source)] for source in cut.sources),
        )


def inner_uses(listener: DoctorListener, case: CapturedCall) -> Iterator[Cut]:
    """The custom Functions that used leaves inside, and whose results went into a graph."""
    for known in listener.inner_uses.known.values():
        if known.fed:
            leaves = [leaf for leaf, _ in known.leaves.living()]
            yield Cut(
                origin=case.origins.of_place(known.place),
                function=known.function,
                reason=known.reason,
                leaves=_names(listener, case, leaves),
                feeds_graph=True,
                inside=True,
            )


def lost_terms(listener: DoctorListener, case: CapturedCall) -> Iterator[LostTerm]:
    """The terms that were lost to the step after them."""
    numbers = {id(cut): number for number, cut in enumerate(listener.cuts.known.values())}
    for known in listener.lost_terms.known:
        terms = (
            LossTerm(case.origins.of_place(term.place), _names(listener, case, living(term.leaves)))
            for term in known.terms
        )
        yield LostTerm(
            cut=numbers[id(known.cut)],
            origin=case.origins.of_place(known.place),
            leaves=_names(listener, case, living(known.leaves)),
            terms=tuple(terms),
            call=known.number,
            times=known.times,
        )


def _names(
    listener: DoctorListener, case: CapturedCall, leaves: Iterable[torch.Tensor]
) -> tuple[str, ...]:
    """What the program calls these leaves, each name once; those without one are left out."""
    names = (name_of(listener, case, leaf) for leaf in leaves)
    return tuple(dict.fromkeys(name for name in names if name))


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
