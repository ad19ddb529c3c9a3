"""Networks that follow another one, a target or an average, and that do so in part only: a part of
which nothing is ever written, running statistics that are those of the start, or updates of
parameters that no module holds any more.

Which parameter follows which one is told by their paths: those of two networks differ in one word,
and in the same one for all pairs (``encoder_k.0.weight``, ``encoder_q.0.weight``).
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

import torch
from torch import nn

from gradscope.analyses.training.overwritten import FEWEST, Overwritten
from gradscope.analyses.training.tracked_parameters import TrackedParameters
from gradscope.autograd.tensors import TensorRef
from gradscope.recording.modules import ModuleTracker

ROOTS = 0xE000
"""Where characters begin that stand for nothing."""

_Kind = Literal["part left behind", "statistics left behind", "updates lost"]
_BatchNorm = nn.modules.batchnorm._BatchNorm
_Paths = Mapping[str, torch.Tensor]
_Change = tuple[str, str]
"""One word of a path, and what it is in another one."""


class KnownLaggard(NamedTuple):
    """What does not follow, of a network that is written to after so many steps; how much, and
    which parameters."""

    kind: _Kind
    steps: int
    amount: int
    leaves: list[TensorRef]


class Followers:
    """Looks for these now and then, while the modules live; ``known`` by the place that writes.

    Args:
        modules: know the paths of parameters.
        learners: know what was used, and who holds what.
        overwritten: knows what was written to.
        is_stepped: whether a step has changed a parameter.
    """

    def __init__(
        self,
        modules: ModuleTracker,
        learners: TrackedParameters,
        overwritten: Overwritten,
        is_stepped: Callable[[torch.Tensor], bool],
    ) -> None:
        self.known: dict[int, KnownLaggard] = {}
        self._modules = modules
        self._learners = learners
        self._overwritten = overwritten
        self._is_stepped = is_stepped

    def look(self, at_end: bool = False) -> None:
        """Backward was called, or the program has ended, when many a module is gone."""
        if not (self._overwritten.is_ripe or at_end):
            return
        self._overwritten.is_ripe = False
        written, places = self._overwritten.changed, dict[int, list[torch.Tensor]]()
        for leaf, known in written.living():
            if known.times >= FEWEST:
                places.setdefault(known.place, []).append(leaf)
        if not places:
            return
        used = [one for one in self._learners.used_leaves() if type(one) is nn.Parameter]
        ahead = {self._path(one): one for one in used if self._is_stepped(one)}
        ours = (self._learners.optimizers.is_held, self._learners.is_reached, written.__contains__)
        still = [one for one in used if not any(knows(one) for knows in ours)]
        for place, leaves in places.items():
            norms = list(self._norms(leaves))
            kind, amount, parts = self._left_behind(leaves, ahead, still, norms, at_end)
            if kind is not None:
                steps = max(known.times for one in leaves if (known := written.get(one)))
                self.known[place] = KnownLaggard(kind, steps, amount, list(map(TensorRef, parts)))
            elif norms:
                # What still lives has followed since.
                self.known.pop(place, None)

    def _left_behind(
        self,
        leaves: list[torch.Tensor],
        ahead: _Paths,
        still: Sequence[torch.Tensor],
        norms: list[_BatchNorm],
        at_end: bool,
    ) -> tuple[_Kind | None, int, Sequence[torch.Tensor]]:
        changes = _changes({path: one for one in leaves if (path := self._path(one))}, ahead)
        parts = [one for one in still if _is_ahead(self._path(one), one, ahead, changes)]
        stale = sum(map(_is_of_the_start, norms)) if changes else 0
        if parts:
            return "part left behind", len(parts), parts
        if stale:
            return "statistics left behind", stale, []
        is_lost = not at_end and self._are_lost(leaves, still)
        return ("updates lost" if is_lost else None), len(leaves), []

    def _path(self, leaf: torch.Tensor) -> str:
        """The path of a parameter, with one character for its root: two of them differ in one
        word."""
        root, name = self._modules.parameter_path(leaf)
        return f"{chr(ROOTS + root)}.{name}" if name else ""

    def _norms(self, leaves: list[torch.Tensor]) -> Iterator[_BatchNorm]:
        """The batch norms that have run, are in eval mode now, and have these weights."""
        ids = set(map(id, leaves))
        for module, _ in self._modules.met():
            is_norm = issubclass(type(module), _BatchNorm) and not module.training
            if is_norm and id(module._parameters.get("weight")) in ids:
                yield module  # type: ignore[misc]

    def _are_lost(self, leaves: list[torch.Tensor], still: Sequence[torch.Tensor]) -> bool:
        """Whether no module holds any of these, which one did, and others like them run
        unchanged."""
        learners, others = self._learners, Counter(one.shape for one in still)
        known = all(learners.born(one) >= 0 or learners.used(one) >= 0 for one in leaves)
        if not known or Counter(one.shape for one in leaves) - others:
            return False
        ids = set(map(id, leaves))
        modules = [one for one in gc.get_objects() if issubclass(type(one), nn.Module)]
        held = (id(leaf) for one in modules for leaf in vars(one).get("_parameters", {}).values())
        return ids.isdisjoint(held)


def _changes(follow: _Paths, ahead: _Paths) -> list[_Change]:
    """The changes of one word that lead from each of these paths to one that is ahead."""
    first, leaf = next(iter(follow.items()), ("", None))
    found = {
        _difference(first, path)
        for path, one in ahead.items()
        if leaf is not None and one.shape == leaf.shape
    }
    every = list(follow.items())
    return [one for one in found if all(_is_ahead(*each, ahead, [one]) for each in every)]


def _difference(one: str, other: str) -> _Change:
    start = _alike(one, other)
    end = _alike(one[start:][::-1], other[start:][::-1])
    return one[start : len(one) - end], other[start : len(other) - end]


def _alike(one: str, other: str) -> int:
    """How many characters are the same at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _is_ahead(path: str, leaf: torch.Tensor, ahead: _Paths, changes: list[_Change]) -> bool:
    """Whether what has this path with one word changed is ahead."""
    for word, instead in changes:
        for at in range(len(path)):
            if path.startswith(word, at):
                other = ahead.get(path[:at] + instead + path[at + len(word) :])
                if other is not None and other.shape == leaf.shape:
                    return True
    return False


def _is_of_the_start(norm: _BatchNorm) -> bool:
    mean, variance = norm.running_mean, norm.running_var
    if mean is None or variance is None:
        return False
    return not bool(mean.any()) and bool((variance == 1).all())
