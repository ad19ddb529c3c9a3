"""The graph that a report will show, as plain data, and what is needed to tell more about it later.

Holds no node, and of tensors only leaves: they are asked about when the program, and the function
that knew them, has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, TypeVar, get_type_hints

import msgspec
import torch
from torch import nn

from gradscope.autograd.tensors import TensorTable, is_learned_leaf
from gradscope.graphing.probe import meta
from gradscope.model.observations import Observations
from gradscope.model.plain import AnyPlace, Place
from gradscope.model.report import BackwardPass, Graph, Origin, Report
from gradscope.recording.modules import attributes_of
from gradscope.recording.names import ModuleNames, Scopes
from gradscope.recording.places import Places
from gradscope.recording.source import Site, Sources
from gradscope.recording.wrappers import named_parameters_in, parameters_in, parts_of

T = TypeVar("T", bound=msgspec.Struct)

MAX_NAMED = 1_000_000
"""Leaves whose names are remembered."""


@cache
def _places_in(kind: type[msgspec.Struct]) -> list[str]:
    """The fields of a record that say where something is."""
    return [
        name
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if hint in (Place, AnyPlace)
    ]


class Origins:
    """A table of places that continues the one of a graph."""

    def __init__(self, known: Iterable[Origin], sources: Sources, places: Places) -> None:
        self._numbers = {origin: number for number, origin in enumerate(known)}
        self._sources = sources
        self._places = places

    def of(self, at: Site | int | None) -> int | None:
        """The index of a place, given itself or by its number; None where none is known."""
        site = self._places.site(at) if isinstance(at, int) else at
        if site is None:
            return None
        return self._numbers.setdefault(self._sources.origin(site), len(self._numbers))

    def told(self, record: T, **known: Any) -> T:
        """A record with the numbers of places as indices of this table, and with what else is known
        of it now."""
        places = {name: self.of(getattr(record, name)) for name in _places_in(type(record))}
        return msgspec.structs.replace(record, **{**places, **known})

    def line(self, place: int) -> str:
        """File and line of a place for a sentence; "" where it is not known."""
        site = self._places.site(place)
        return "" if site is None else str(self._sources.origin(site))

    def table(self) -> tuple[Origin, ...]:
        """All places so far."""
        return tuple(self._numbers)


def names_of(scopes: Scopes, modules: ModuleNames) -> TensorTable[str]:
    """What the program calls its leaves, looked up while its variables are in sight."""
    names: TensorTable[str] = TensorTable(MAX_NAMED)
    # The methods of nn.Module, here and below: those of a subclass are code of the program.
    held = (one for _, module in modules.owners for one in parameters_in(module))
    named = [(one, modules.parameters.get(id(one), [])) for one in held]
    for tensor, known in (*named, *((one, scopes.names(one)) for one in scopes.held_tensors())):
        if known and known[0] and tensor not in names:
            names[tensor] = known[0]
    return names


@dataclass
class Owner:
    """The parameters of one module that the program holds, all of them or (``loose``) of one that
    no other module knows, which is then told; or (``plain``) a leaf that is a module's attribute
    and no Parameter."""

    tensors: list[tuple[torch.Tensor, str]]
    loose: bool = False
    plain: bool = False
    module: nn.Module | None = None


@dataclass
class CapturedCall:
    """One graph, what flowed through it, and what was ``seen`` on it before its buffers were freed.

    ``unfinished``: the program ended before its first backward call, so that what it had not used
    by then says nothing.
    """

    graph: Graph
    origins: Origins
    names: TensorTable[str]
    owners: list[Owner]
    leaf_numbers: TensorTable[int]
    passes: tuple[BackwardPass, ...] = ()
    seen: Observations = field(default_factory=Observations)
    notes: list[str] = field(default_factory=list)
    held: list[torch.Tensor] = field(default_factory=list)
    unfinished: bool = False

    @cached_property
    def parameters(self) -> dict[str, int]:
        """The ids of the tensors that modules in sight hold now, by their names."""
        return {name: id(tensor) for owner in self.owners for tensor, name in owner.tensors}

    def plain(self) -> Report:
        """The graph and what flowed through it."""
        graph = msgspec.structs.replace(self.graph, origins=self.origins.table())
        return Report(graph, meta(), self.passes)


def owners_of(modules: ModuleNames, loose: Iterable[tuple[nn.Module, str]]) -> list[Owner]:
    """All modules in sight with their parameters, and those that only a plain list holds."""
    found = []
    for _, module in modules.owners:
        named: list[tuple[torch.Tensor, str]] = [
            (tensor, next(iter(modules.parameters.get(id(tensor), ())), ""))
            for tensor in parameters_in(module)
        ]
        found.append(Owner(named))
        found.extend(
            Owner([leaf], loose=True, plain=True) for leaf in _plain_leaves(modules, module)
        )
    for module, path in loose:
        parameters = named_parameters_in(module)
        named = [(tensor, f"{path}.{name}") for name, tensor in parameters]
        found.append(Owner(named, loose=True, module=module))
    return found


def _plain_leaves(modules: ModuleNames, owner: nn.Module) -> Iterator[tuple[torch.Tensor, str]]:
    """Tensors that modules keep as plain attributes, or in one, and that require grad; a Parameter
    is known where it was made."""
    for _, child in parts_of(owner):
        for name, value in attributes_of(child, modules.paths.get(id(child), "")):
            # `isinstance` would ask for `__class__`, which may be a property of the program.
            kind = type(value)
            is_plain = issubclass(kind, torch.Tensor) and not issubclass(kind, nn.Parameter)
            if is_plain and is_learned_leaf(value):
                yield value, name


def loose_modules(
    modules: ModuleNames, met: Iterable[tuple[nn.Module, str]]
) -> list[tuple[nn.Module, str]]:
    """Modules that were called, and that no module in sight holds; named by who keeps them."""
    held = {id(child) for _, owner in modules.owners for _, child in parts_of(owner)}
    return [(module, path) for module, path in met if id(module) not in held]
