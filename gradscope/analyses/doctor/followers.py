"""Networks that follow another one, a target or an average, and that do so in part only: a part of
which nothing is ever written, running statistics that are those of the start, or updates of
parameters that no module holds any more.

Which parameter follows which one is told by their paths: those of two networks differ in one word,
and in the same one for all pairs (``encoder_k.0.weight``, ``encoder_q.0.weight``).
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import takewhile

import torch
from torch import nn

from gradscope.analyses.doctor.captured_call import Origins
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.observed_loop import NameOf
from gradscope.autograd.tensors import TensorTable
from gradscope.model.observations import Oddity
from gradscope.words import listed

FEWEST = 5
"""Steps after which a parameter was written to, from which on it follows another."""

LARGEST = 1_000
"""Parameters of such a network whose paths are compared."""

ROOTS = 0xE000
"""Where characters begin that stand for nothing."""

_Named = Mapping[str, torch.Tensor]
_Change = tuple[str, str]
"""The one word in a name, and what it is in the other name."""


def left_behind(listener: DoctorListener, origins: Origins, name_of: NameOf) -> Iterator[Oddity]:
    """All that should follow and does not."""
    learners, written = listener.learners, listener.overwritten.changed
    paths = TensorTable[str](LARGEST * LARGEST)
    for module, at in listener.recorder.modules.met():
        for name, leaf in module._parameters.items():
            if leaf is not None and leaf not in paths:
                # One character for each root, so that two of them differ in one word.
                paths[leaf] = f"{chr(ROOTS + at.root)}.{at.path}.{name}"
    places: dict[int, list[torch.Tensor]] = {}
    for leaf, known in written.living():
        if known.times >= FEWEST:
            places.setdefault(known.place, []).append(leaf)
    if not places:
        return
    used = [one for one in learners.used_leaves() if type(one) is nn.Parameter]
    ahead = {paths.get(one, ""): one for one in used if listener.statistics.is_stepped(one)}
    ours = (learners.optimizers.is_held, written.__contains__, learners.is_reached)
    still = [one for one in used if not any(knows(one) for knows in ours)]
    for place, leaves in places.items():
        steps = max(known.times for one in leaves if (known := written.get(one)) is not None)
        named = [(path, one) for one in leaves[:LARGEST] if (path := paths.get(one))]
        origin, changes = origins.of_place(place), _changes(dict(named), ahead)
        parts = [
            name_of(one) for one in still if _is_ahead(paths.get(one, ""), one, ahead, changes)
        ]
        norms = [one for one in _norms(listener, leaves) if _is_of_the_start(one)]
        if parts:
            yield Oddity("part left behind", origin, steps, (len(parts),), listed(parts, 3))
        elif changes and norms:
            yield Oddity("statistics left behind", origin, steps, (len(norms),))
        elif _are_lost(listener, leaves, still):
            yield Oddity("updates lost", origin, steps, (len(leaves),))


def _changes(follow: _Named, ahead: _Named) -> list[_Change]:
    """The changes of one word that lead from each of these names to one that is ahead."""
    found = Counter(
        change
        for name, leaf in follow.items()
        for change in {
            _difference(name, other) for other, one in ahead.items() if one.shape == leaf.shape
        }
    )
    return [change for change, times in found.items() if times == len(follow)]


def _difference(one: str, other: str) -> _Change:
    start = _alike(one, other)
    end = _alike(one[start:][::-1], other[start:][::-1])
    return one[start : len(one) - end], other[start : len(other) - end]


def _alike(one: str, other: str) -> int:
    """How many characters are the same at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _is_ahead(name: str, leaf: torch.Tensor, ahead: _Named, changes: list[_Change]) -> bool:
    """Whether what has this name with one word changed is ahead, and was to be followed."""
    for word, instead in changes:
        for at in range(len(name)):
            if name.startswith(word, at):
                other = ahead.get(name[:at] + instead + name[at + len(word) :])
                if other is not None and other.shape == leaf.shape:
                    return True
    return False


def _norms(
    listener: DoctorListener, leaves: list[torch.Tensor]
) -> Iterator[nn.modules.batchnorm._BatchNorm]:
    """The batch norms that have run, are in eval mode now, and have these weights."""
    ids = set(map(id, leaves))
    for module, _ in listener.recorder.modules.met():
        is_norm = issubclass(type(module), nn.modules.batchnorm._BatchNorm)
        if is_norm and not module.training and id(module._parameters.get("weight")) in ids:
            yield module  # type: ignore[misc]


def _is_of_the_start(norm: nn.modules.batchnorm._BatchNorm) -> bool:
    mean, variance = norm.running_mean, norm.running_var
    is_there = mean is not None and variance is not None
    return is_there and not mean.any().item() and bool((variance == 1).all().item())


def _are_lost(
    listener: DoctorListener, leaves: list[torch.Tensor], still: list[torch.Tensor]
) -> bool:
    """Whether no module holds any of these, which one did, and others like them run unchanged."""
    learners, others = listener.learners, Counter(one.shape for one in still)
    known = all(learners.born(one) >= 0 or learners.used(one) >= 0 for one in leaves)
    if not known or Counter(one.shape for one in leaves) - others:
        return False
    ids = set(map(id, leaves))
    modules = [one for one in gc.get_objects() if issubclass(type(one), nn.Module)]
    held = (id(leaf) for one in modules for leaf in vars(one).get("_parameters", {}).values())
    return ids.isdisjoint(held)
