"""What autograd keeps alive for backward, as text: totals, what is there twice, and tables; added
up by line, module, op or dtype.

Must not know how it was counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gradscope.escaping import visible
from gradscope.model.ranks import Ranks
from gradscope.model.report import Node, Report
from gradscope.model.studies import Hidden, Holding, KeptStorage, Memory
from gradscope.render.answers.answer import GraphAnswer, held
from gradscope.render.options import Options
from gradscope.render.words.numbers import share, size
from gradscope.render.words.table import Cell, Column, Part
from gradscope.words import count, either, listed, one_line

OUTSIDE, UNSEEN = "(outside modules)", "(not seen)"


class HoldingGroup(NamedTuple):
    """Storages that share a line, module, op or dtype; each is in one group only: that of the node
    that saved it first, so that every table has the same total."""

    label: str
    place: str
    kept: list[KeptStorage]

    @property
    def bytes(self) -> int:
        """The bytes of all of them."""
        return sum(one.bytes for one in self.kept)


def folded(path: str) -> str:
    """A module's path with its numbers left out: ``blocks.*.attn`` stands for all of them."""
    return visible(re.sub(r"(?<![^.])\d+(?![^.])", "*", path))


TABLES = ("line", "module", "op", "dtype")
ROWS = 8
"""Rows of a table where several are shown."""

MORE_ROWS = 40
"""Rows of the one table that was asked for."""

WASTED = 2
"""A storage this many times larger than the tensor saved from it is worth a word."""

_TITLES = {"line": "expression", "module": "module", "op": "op", "dtype": "dtype"}


class MemoryAnswer(GraphAnswer):
    """The text of a report that says what is kept."""

    def __init__(self, report: Report, options: Options) -> None:
        super().__init__(report, options)
        self.memory: Memory = held(
            report.memory, either("gradscope memory", "gradscope.memory(root)")
        )
        self.activations = [one for one in self.memory.kept if one.holding == "activation"]

    def lines(self) -> Iterator[str]:
        """Totals, remarks, tables."""
        total = f"{size(self.memory.total('activation'))} of activations kept for backward"
        target = visible(self.report.meta.target)
        yield from self.wrapped(" · ".join(filter(None, (target, total))), "bold")
        for line in (self._others(), *self._remarks()):
            yield from self.wrapped(line)
        if self.report.ranks is not None:
            yield ""
            yield from self._ranks(self.report.ranks)
        chosen = (self.options.by,) if self.options.by else TABLES
        most = MORE_ROWS if self.options.by else ROWS
        for name in chosen if self.activations else ():
            yield ""
            yield from self._table(name, most)

    def _ranks(self, ranks: Ranks) -> Iterable[str]:
        """What each rank keeps for backward; of many ranks those that keep most."""
        told = [one for one in ranks.each if one.held is not None]
        most = sorted(told, key=lambda one: (-(one.held or 0), one.rank))[:ROWS]
        shown = told if len(told) <= ROWS else most
        rows = ([str(one.rank), size(one.held or 0), visible(one.host)] for one in shown)
        columns = [Column("rank", right=True), Column("activations", right=True), Column("host")]
        yield from self.table(columns, rows)
        if len(told) > ROWS:
            yield f"… {count(len(told) - ROWS, 'more rank')}, which keep no more"

    # ------------------------------------------------------------------ sentences

    def _others(self) -> str:
        memory = self.memory
        words = [count(len(self.activations), "storage")]
        others: tuple[Holding, ...] = ("parameter", "buffer", "input")
        amounts = {holding: memory.total(holding) for holding in others}
        words += [f"{holding}s {size(amount)}" for holding, amount in amounts.items() if amount]
        kept = " · also saved, but in memory regardless: " if len(words) > 1 else ""
        return words[0] + kept + ", ".join(words[1:])

    def _remarks(self) -> Iterator[str]:
        yield from self._wasted()
        packed, attributes = self.memory.total("packed"), self.memory.total("attribute")
        if attributes:
            yield (
                f"not in that total: {size(attributes)} that custom Functions keep as plain "
                "attributes of ctx; ctx.save_for_backward would let backward free them"
            )
        if packed:
            yield f"not in that total: {size(packed)} that saved-tensor hooks of the program packed"
        yield from _hidden(self.memory.hidden)
        if self.memory.freed:
            nodes = count(len(self.memory.freed), "node")
            yield f"not counted: {nodes} whose saved tensors an earlier backward call has freed"
        gone = [one.missing for one in self.memory.kept if one.missing]
        if gone:
            of = count(len(gone), "storage")
            yield f"not in that total: {size(sum(gone))} of {of}, whose memory is not there now"
        yield from map(visible, self.report.notes)

    def _wasted(self) -> Iterator[str]:
        least = self.memory.total("activation") // 100
        found = [one for one in self.activations if one.bytes > WASTED * one.used]
        found = [one for one in found if one.bytes - one.used > least]
        same = Counter((*self._key("line", one), one.used, one.bytes) for one in found)
        for (expression, place, used, whole), times in list(same.items())[:3]:
            often = f", {times:,} times" if times > 1 else ""
            yield (
                f"{expression} ({place}) saved {size(used)} of a storage of {size(whole)}{often}, "
                "all of which stays; a clone() of that part would not keep the rest"
            )

    # ------------------------------------------------------------------ tables

    def groups(self, name: str) -> list[HoldingGroup]:
        """The activations by ``line``, ``module``, ``op`` or ``dtype``, the largest first."""
        found: dict[tuple[str, str], list[KeptStorage]] = {}
        for one in self.activations:
            found.setdefault(self._key(name, one), []).append(one)
        groups = [HoldingGroup(*key, kept) for key, kept in found.items()]
        return sorted(groups, key=lambda group: (-group.bytes, group.label, group.place))

    def _key(self, name: str, one: KeptStorage) -> tuple[str, str]:
        """What a storage is grouped by, and the line, for groups by line."""
        node = self._first(one)
        if name == "line":
            origin = self.graph.origin_of(node)
            words = UNSEEN if origin is None else visible(one_line(origin.expression))
            return words, self.source(node.id)
        if name == "module":
            return folded(self.graph.module_of(node)) or OUTSIDE, ""
        return visible(node.op) if name == "op" else one.dtype, ""

    def _first(self, one: KeptStorage) -> Node:
        """The node that saved a storage first."""
        return self.graph.nodes[one.holders[0][0]]

    def _table(self, name: str, most: int) -> Iterator[str]:
        groups = self.groups(name)
        columns = [
            Column("bytes", right=True),
            Column("share", right=True, drop=2),
            Column("count", right=True, drop=1),
            Column("dtype" if name != "dtype" else "", drop=3),
            Column("line", narrowest=8, comfort=8),
            Column(_TITLES[name], narrowest=12, comfort=20),
        ]
        shown = self.options.chosen(groups, most)
        yield from self.table(columns, (self._row(group, name) for group in shown))
        left = len(groups) - len(shown)
        if left:
            amount = sum(group.bytes for group in groups) - sum(group.bytes for group in shown)
            ways = either(f"--by {name} --all", f"by={name!r}, all=True")
            yield self.line(f"… {left:,} more with {size(amount)}: {ways}", "dim")

    def _row(self, group: HoldingGroup, name: str) -> list[Cell]:
        dtypes = Counter[str]()
        for one in group.kept:
            dtypes[one.dtype] += one.bytes
        many = len({self.graph.module_of(self._first(one)) for one in group.kept})
        of_modules = name == "module"
        times = f" ×{many:,}" if of_modules and many > 1 else ""
        # Modules differ at their ends, expressions at their beginnings.
        label = Part(group.label, cut="start" if of_modules else "end"), Part(times, cut="never")
        return [
            size(group.bytes),
            share(group.bytes, self.memory.total("activation")),
            f"{len(group.kept):,}",
            "" if name == "dtype" else listed((dtype for dtype, _ in dtypes.most_common()), 2),
            Part(group.place, cut="start"),
            label,
        ]


render = MemoryAnswer.render


def _hidden(hidden: Iterable[Hidden]) -> Iterator[str]:
    """What could not be counted, one sentence a reason."""
    for (before, what, after), times in Counter(map(_sentence, hidden)).items():
        yield f"{before}{count(times, what)}{after}"


def _sentence(one: Hidden) -> tuple[str, str, str]:
    """What is counted, and the words before and after it."""
    if one.recomputed:
        return (
            "",
            "saved tensor",
            " of checkpointed parts are not kept: backward computes them again; "
            "what the parts started from is counted",
        )
    if not one.slot:
        after = f" for {visible(one.reason)}, which torch does not tell"
        return "not counted: anything saved by ", "node", after
    return "not counted: ", "saved tensor", f" behind {visible(one.reason)}"
