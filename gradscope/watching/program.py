"""A whole program that is watched, whose models nobody has named: those whose parameters its
optimizers hold.

Keeps none of them alive, and asks no code of theirs.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator, Sequence
from itertools import chain, count
from traceback import walk_stack
from typing import Any

import torch
from torch import nn

from gradscope.autograd.originals import living_optimizers, parameters_of
from gradscope.recording.names import Scopes
from gradscope.recording.places import Places
from gradscope.recording.wrappers import named_parameters_in, plain_path
from gradscope.watching.arrivals import HiddenFromProgram, untraced
from gradscope.watching.norms import ModelParameters
from gradscope.watching.watch import Watch


class ProgramWatch(Watch):
    """Watches what the optimizers of a program train; takes what a :class:`Watch` does, but for the
    model.

    They are looked for at the first backward call, and one that is made later is met at its step.
    """

    def __init__(self, *how: Any, **more: Any) -> None:
        self._found = FoundModels()
        super().__init__(self._found, *how, **more)

    @property
    def has_calls(self) -> bool:
        """Whether a backward call has brought a model a gradient."""
        return self._turns.calls > 0

    def _call_begins(self, roots: Any, gradients: Any) -> None:
        if not self._is_known:
            self._take(living_optimizers())
        super()._call_begins(roots, gradients)

    @untraced
    def _step_begins(self, optimizer: Any, _args: object, _kwargs: object) -> None:
        if not self._is_away():
            with HiddenFromProgram(self._note_fault):
                if self._call is None and not self._members.held_by(optimizer):
                    self._take([optimizer])
        super()._step_begins(optimizer, _args, _kwargs)

    def _take(self, optimizers: list[Any]) -> None:
        self._found.take(optimizers)
        self._members = ModelParameters.of(self._found)

    def _conclude(self) -> None:
        """What was not found is told by whoever runs the program."""


class FoundModels:
    """Models, and tensors in none, that are trained; together they stand in for one model."""

    def __init__(self) -> None:
        self._models: list[tuple[str, weakref.ref[Any]]] = []
        # By their optimizer: of a tensor that has a weak reference torch changes nothing in place.
        self._loose: list[tuple[weakref.ref[Any], dict[int, str]]] = []

    def named_parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Each parameter once; a model that is not the only one has its name before the path."""
        found = [
            (f"{prefix}/{path}" if prefix else path, parameter)
            for prefix, model in self._models
            for path, parameter in _parameters(model())
        ]
        loose = ((names, one) for of, names in self._loose for one in parameters_of(of()))
        found += [(names[id(one)], one) for names, one in loose if id(one) in names]
        seen = set[int]()
        for name, one in found:
            if id(one) not in seen:
                seen.add(id(one))
                yield name, one

    def take(self, optimizers: Sequence[Any]) -> None:
        """Add what these hold and is not known."""
        self._models = [one for one in self._models if one[1]() is not None]
        self._loose = [one for one in self._loose if one[0]() is not None]
        known = {id(parameter) for _, parameter in self.named_parameters()}
        held = {id(one): one for each in optimizers for one in parameters_of(each)}
        new = {key: one for key, one in held.items() if key not in known}
        if not new:
            return
        models = _outermost(new)
        inside = {id(one) for model in models for _, one in _parameters(model)}
        loose = {key: one for key, one in new.items() if key not in inside}
        names = self._unique(_names([*models, *loose.values()]))
        if len(models) == 1 and not (self._models or self._loose or loose):
            names = [""]
        self._models += zip(names, map(weakref.ref, models), strict=False)
        own = dict(zip(loose, names[len(models) :], strict=True))
        if own:
            self._loose += [(weakref.ref(one), own) for one in optimizers]

    def _unique(self, names: list[str]) -> list[str]:
        taken = {name for name, _ in self._models}
        taken |= {name for _, own in self._loose for name in own.values()}
        found = []
        for name in names:
            numbered = (f"{name}-{number}" for number in count(2))
            found.append(next(one for one in chain([name], numbered) if one not in taken))
            taken.add(found[-1])
        return found


def _parameters(model: Any) -> list[tuple[str, torch.Tensor]]:
    pairs = () if model is None else named_parameters_in(model)
    return [(plain_path(model, path), one) for path, one in pairs]


def _outermost(parameters: dict[int, torch.Tensor]) -> list[Any]:
    """The modules that hold these themselves or in a part, and are themselves parts of none."""
    # `isinstance` would ask each of all objects for `__class__`, which may be computed.
    modules = [one for one in gc.get_objects() if issubclass(type(one), nn.Module)]
    inside = (vars(one).get("_modules") for one in modules)
    parts = {id(part) for own in inside if isinstance(own, dict) for part in own.values()}
    found, reached = [], set[int]()
    for one in modules:
        own = (
            {id(parameter) for _, parameter in _parameters(one)} if id(one) not in parts else set()
        )
        # Of two that hold the same ones, the first.
        if own & parameters.keys() - reached:
            found.append(one)
            reached |= own
    return found


def _names(things: list[Any]) -> list[str]:
    """What the program calls each: the variable that holds it, or leads to it, of the outermost
    caller that has one, or else its class."""
    frames = Places().own_frames(frame for frame, _ in walk_stack(sys._getframe(1)))
    scopes = Scopes.of_frames(reversed(frames))
    return [
        scopes.name_of(one) or ("tensor" if isinstance(one, torch.Tensor) else type(one).__name__)
        for one in things
    ]
