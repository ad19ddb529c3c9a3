"""What is kept for backward, added up by line, module, op or dtype.

Knows nothing of layout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gradscope.escaping import visible
from gradscope.model.memory import KeptStorage, Memory
from gradscope.model.report import Graph, Node
from gradscope.render.words.places import short_files
from gradscope.words import one_line

OUTSIDE, UNSEEN = "(outside modules)", "(not seen)"


@dataclass
class HoldingGroup:
    """Storages that share a line, module, op or dtype; each is in one group only."""

    label: str
    place: str = ""
    bytes: int = 0
    count: int = 0
    dtypes: dict[str, int] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)

    def add(self, one: KeptStorage, module: str) -> None:
        """Count one storage."""
        self.bytes += one.bytes
        self.count += 1
        self.dtypes[one.dtype] = self.dtypes.get(one.dtype, 0) + one.bytes
        self.modules.add(module)


class Holdings:
    """The groups of one answer.

    A storage that several nodes hold goes to the one that saved it first, so that every table has
    the same total.
    """

    def __init__(self, graph: Graph, memory: Memory) -> None:
        self.graph = graph
        self.memory = memory
        self._files = short_files({origin.file for origin in graph.origins})

    def activations(self) -> list[KeptStorage]:
        """What there is only for backward."""
        return [one for one in self.memory.kept if one.holding == "activation"]

    def by(self, name: str) -> list[HoldingGroup]:
        """The activations by ``line``, ``module``, ``op`` or ``dtype``, the largest first."""
        key: Callable[[KeptStorage], tuple[str, str]] = {
            "line": self.line,
            "module": lambda one: (folded(self.module(one)) or OUTSIDE, ""),
            "op": lambda one: (visible(self._first(one).op), ""),
            "dtype": lambda one: (one.dtype, ""),
        }[name]
        return _grouped((key(one), one, self.module(one)) for one in self.activations())

    def line(self, one: KeptStorage) -> tuple[str, str]:
        """The expression whose node saved a storage first, and where it stands."""
        origin = self.graph.origin_of(self._first(one))
        if origin is None:
            return UNSEEN, ""
        place = f"{self._files[origin.file]}:{origin.line}"
        return visible(one_line(origin.expression)), place

    def module(self, one: KeptStorage) -> str:
        """The module in whose call a storage was saved first."""
        return self.graph.module_of(self._first(one))

    def _first(self, one: KeptStorage) -> Node:
        return self.graph.nodes[one.holders[0][0]]


def folded(path: str) -> str:
    """A module's path with its numbers left out: ``blocks.*.attn`` stands for all of them."""
    return visible(re.sub(r"(?<![^.])\d+(?![^.])", "*", path))


def _grouped(rows: Iterable[tuple[tuple[str, str], KeptStorage, str]]) -> list[HoldingGroup]:
    groups: dict[tuple[str, str], HoldingGroup] = {}
    for (label, place), one, module in rows:
        groups.setdefault((label, place), HoldingGroup(label, place)).add(one, module)
    return sorted(groups.values(), key=lambda group: (-group.bytes, group.label, group.place))
