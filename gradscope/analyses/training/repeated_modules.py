"""One layer under several names of a list, because the list was multiplied: ``[Layer()] * n``.

A layer may be shared on purpose, so only the line that makes it inside of such a list tells.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import NamedTuple

from torch import nn

from gradscope.analyses.training.stores import in_sight, methods, sites_of
from gradscope.recording.names import ModuleNames
from gradscope.recording.places import Places
from gradscope.recording.source import Site, Sources
from gradscope.recording.wrappers import parameters_in

MAX_LISTS = 1_000
"""Lists whose line was looked for."""

_ON_PURPOSE = re.compile(r"shar|tied|tie_|recur|universal|albert", re.IGNORECASE)


class KnownMultiple(NamedTuple):
    """A list that holds one layer several times: its path, the layer's parameters, and the line
    that multiplied it."""

    name: str
    times: int
    parameters: int
    site: Site


class Repeats:
    """All such lists, each once."""

    def __init__(self, places: Places, sources: Sources) -> None:
        self.known: dict[tuple[str, int], KnownMultiple] = {}
        self._places = places
        self._sources = sources
        self._looked: set[tuple[str, str]] = set()

    def look(self, modules: ModuleNames, frames: list[FrameType]) -> None:
        """These are the modules in sight of a backward call."""
        owners = [module for _, module in modules.owners]
        for held, layer, times in _repeated(owners):
            name, kind = modules.paths.get(id(held), "") or "the model", type(layer).__name__
            size = sum(one.numel() for one in parameters_in(layer) if one.requires_grad)
            if size and (name, kind) not in self._looked and len(self._looked) < MAX_LISTS:
                self._looked.add((name, kind))
                kinds = {type(one) for owner in owners for one in nn.Module.modules(owner)}
                codes = {*in_sight(frames), *(code for one in kinds for code in methods(one))}
                site = next(self._multiplying(codes, kind), None)
                if site is not None:
                    line = site.code.co_filename, self._sources.origin(site).line
                    self.known[line] = KnownMultiple(name, times, size, site)

    def _multiplying(self, codes: Iterable[CodeType], kind: str) -> Iterator[Site]:
        """Lines that make such a layer inside of a list, and multiply the list."""
        for site in sites_of(code for code in codes if self._places.is_own(code)):
            origin = self._sources.origin(site)
            words = f"{origin.expression} {origin.variable} {origin.function}"
            if not _ON_PURPOSE.search(words) and _multiplies(origin.expression, kind):
                yield site


def _repeated(owners: Iterable[nn.Module]) -> Iterator[tuple[nn.Module, nn.Module, int]]:
    """Layers that a container holds several times, with it."""
    for owner in owners:
        for child in nn.Module.modules(owner):
            if issubclass(type(child), (nn.ModuleList, nn.Sequential)):
                held = [one for one in child._modules.values() if one is not None]
                ids = [id(one) for one in held]
                for layer in {id(one): one for one in held}.values():
                    if ids.count(id(layer)) > 1:
                        yield child, layer, ids.count(id(layer))


def _multiplies(expression: str, kind: str) -> bool:
    """Whether it is a product of a list in which such a layer is made."""
    if "*" not in expression or f"{kind}(" not in expression:
        return False
    try:
        product = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
        return False
    lists = [one for one in (product.left, product.right) if isinstance(one, ast.List | ast.Tuple)]
    made = [item.func for one in lists for item in one.elts if isinstance(item, ast.Call)]
    return any(ast.unparse(one).rpartition(".")[2] == kind for one in made)
