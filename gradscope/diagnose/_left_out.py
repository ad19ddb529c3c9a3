"""What speaks for it that a parameter outside of every optimizer was meant to be in one.

Who trains a head only gives the optimizer the head only, so that alone says nothing.  Knows no
rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gradscope.diagnose._facts import Facts
from gradscope.diagnose._ops import REDUCING
from gradscope.model.observations import TrackedParameter

_NUMBER = re.compile(r"(?:^|\.|\[)(\d+)\]?(?=\.)")


class Evidence(NamedTuple):
    """A sentence, the optimizer that should hold the parameter, and what to do."""

    words: str
    optimizer: int | None
    remedy: str


_LATER = "Give the optimizer what is switched on later as well: `optimizer.add_param_group(...)`."
_BOTH = "Give the optimizer the parameters of all of them."


def evidence(facts: Facts, left: Sequence[TrackedParameter]) -> Evidence | None:
    """The first thing that speaks for it, for parameters that are left out together."""
    probes: tuple[Callable[[Facts, Sequence[TrackedParameter]], Evidence | None], ...] = (
        _thawed,
        _twins,
        _of_the_loss,
        _of_a_list,
        _of_one_module,
    )
    return next((found for probe in probes if (found := probe(facts, left))), None)


def _thawed(facts: Facts, left: Sequence[TrackedParameter]) -> Evidence | None:
    """Frozen while the optimizer was made, and switched on since."""
    late = [item for item in left if item.thawed]
    if not late:
        return None
    place = facts.location(late[0].thawed_at)
    where = f" at {place.file}:{place.line}" if place else ""
    words = f"frozen when the optimizer was made; requires_grad was switched on later{where}"
    return Evidence(words, _first_optimizer(facts), _LATER)


def _twins(facts: Facts, left: Sequence[TrackedParameter]) -> Evidence | None:
    """Two optimizers, made by different lines, hold the same, and one module is in none."""
    tops = {item.name.partition(".")[0] for item in left}
    if any(item.held_by and item.name.partition(".")[0] in tops for item in facts.seen.learners):
        return None
    members: dict[frozenset[str], int] = {}
    for number, origin in enumerate(facts.seen.optimizers):
        names = frozenset(one.name for one in facts.seen.learners if number in one.held_by)
        other = members.setdefault(names, number)
        if names and origin != facts.seen.optimizers[other]:
            place = facts.location(facts.seen.optimizers[other])
            where = f" as the one at {place.file}:{place.line}" if place else ""
            return Evidence(
                f"two optimizers hold the same parameters: this one{where}",
                number,
                "Give the second optimizer the parameters of this module.",
            )
    return None


def _of_the_loss(facts: Facts, left: Sequence[TrackedParameter]) -> Evidence | None:
    """Parameters that the module of the loss itself holds, not a network inside of it."""
    paths = _losses(facts)
    own = [item for item in left if item.name.rpartition(".")[0] in paths]
    if not own:
        return None
    words = f"{own[0].name.rpartition('.')[0]} makes the loss, and has parameters of its own"
    remedy = "Give the optimizer the parameters of the loss, too: "
    remedy += "`[*model.parameters(), *criterion.parameters()]`."
    return Evidence(words, _first_optimizer(facts), remedy)


def _losses(facts: Facts) -> set[str]:
    """The modules in whose calls the terms of the loss were made."""
    pending = [root.node for root in facts.graph.roots]
    seen, found = set(pending), set()
    while pending:
        node = pending.pop()
        record = facts.graph.nodes[node]
        path, first = facts.module(record), record.outputs[0] if record.outputs else None
        if path and first is not None and not first.shape:
            found.add(path)
        elif not path and facts.op(node) in REDUCING:
            fresh = [below for below in facts.below(node) if below not in seen]
            seen.update(fresh)
            pending.extend(fresh)
    return found


def _of_a_list(facts: Facts, left: Sequence[TrackedParameter]) -> Evidence | None:
    """Members of a list of modules, of which the optimizer holds an earlier one of the same shape.

    To train the last ones of a list is ordinary; to leave out later ones is not."""
    held = [item for item in facts.seen.learners if item.in_optimizer]
    for item in left:
        for match in _NUMBER.finditer(item.name):
            start, end = item.name[: match.start(1)], item.name[match.end(1) :]
            for other in held:
                inner = other.name.removeprefix(start).removesuffix(end)
                if (
                    other.name == f"{start}{inner}{end}"
                    and inner.isdigit()
                    and int(inner) < int(match[1])
                    and other.tensor.shape == item.tensor.shape
                ):
                    words = f"the optimizer holds {other.name}, of the same list"
                    return Evidence(words, _holder(facts, other), _BOTH)
    return None


def _of_one_module(facts: Facts, left: Sequence[TrackedParameter]) -> Evidence | None:
    """A module of which another parameter is held, where all of most such modules are."""
    kinds: dict[str, dict[str, TrackedParameter]] = {}
    for item in facts.seen.learners:
        if item.requires_grad:
            path, _, name = item.name.rpartition(".")
            kinds.setdefault(path, {})[name] = item
    for item in left:
        path, _, name = item.name.rpartition(".")
        own = kinds[path]
        other = next((one for one in own.values() if one.in_optimizer), None)
        alike = [one for one in kinds.values() if one.keys() == own.keys()]
        whole = sum(all(one.in_optimizer for one in kind.values()) for kind in alike)
        # Who trains the biases only leaves out the weights of nearly all.
        partly = sum(not kind[name].in_optimizer for kind in alike)
        if other is not None and len(own) > 1 and whole > partly:
            words = f"the optimizer holds {other.name}, of the same module"
            return Evidence(words, _holder(facts, other), _BOTH)
    return None


def _holder(facts: Facts, item: TrackedParameter) -> int | None:
    return item.held_by[0] if item.held_by else _first_optimizer(facts)


def _first_optimizer(facts: Facts) -> int | None:
    return 0 if facts.seen.optimizers else None


def line_of(facts: Facts, items: Iterable[TrackedParameter]) -> Iterable[str]:
    """Where the parameters were made, as evidence."""
    place = next((found for item in items if (found := facts.location(item.made))), None)
    if place is not None:
        yield f"made at {place.file}:{place.line}"
