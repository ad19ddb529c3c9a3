"""What all drawings of a report have in common: its view, its gradients, and the words for its
parts.

Must not know of any one format.  Texts it returns are made visible
(:mod:`gradscope.render.words.text`), but not escaped for markup."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Self

from gradscope.errors import ReportError
from gradscope.escaping import visible
from gradscope.model.plain import TensorInfo
from gradscope.model.report import (
    BackwardPass,
    GradientInfo,
    ModuleCall,
    Node,
    Origin,
    Report,
    around,
)
from gradscope.render.drawing.blame import Blame
from gradscope.render.drawing.scale import Round, Scale, short, span
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.text import BADGES, short_files, source_url
from gradscope.simplify import Folding
from gradscope.simplify.folded import simplify
from gradscope.simplify.gradients import ViewGradients
from gradscope.simplify.hierarchy import with_class
from gradscope.simplify.partition import label_of
from gradscope.simplify.view import Item, Link, View
from gradscope.words import count, listed, one_line, option, pattern

if TYPE_CHECKING:
    from gradscope.model.observations import Finding, Severity

MOST_NAMED = 2
"""Modules that were never called, of which the names stand at their list."""

MOST_FACTORS = 4
"""Elements of a local derivative, or of a value, that stand in the picture of an explanation."""


class Scene:
    """A report, simplified and ready to be drawn."""

    def __init__(self, report: Report, options: Options, compared: bool = False) -> None:
        """Of a picture in which two sides are ``compared`` neither's gradients are drawn, but how
        far they are apart."""
        self.report = report
        self.options = options
        self.graph = report.graph
        self.backward = None if compared else _chosen_pass(report, options.call)
        self.blame = Blame(report, self.backward)
        self.view: View = simplify(report.graph, self._folding())
        self.incoming = self.view.incoming()
        self.gradients: ViewGradients | None = None
        on_edges: Iterable[GradientInfo] = ()
        given: Sequence[GradientInfo] = ()
        if self.backward is not None:
            self.gradients = ViewGradients(self.graph, self.backward, self.view)
            on_edges = (self.backward.gradients[entry] for entry in set(self.backward.edges))
            brought = (one.new for one in self.backward.accumulations)
            given = [self.backward.gradients[at] for at in (*self.backward.seeds, *brought)]
        self.scale = Scale(on_edges, given)

    @classmethod
    def at_once(cls, report: Report, options: Options, rows: int | None = None) -> Self:
        """What a picture shows, or a tree of so many ``rows``: less than a page, unless nodes are
        pointed at."""
        overlay = options.overlay is not None and not options.overlay.is_ratio
        pointed = overlay or report.explanation or options.names == "torch"
        folding = replace(options.folding, at_once=not pointed, rows=rows)
        return cls(report, replace(options, folding=folding), rows is None and bool(options.sides))

    def _folding(self) -> Folding:
        """How far to fold, with the nodes of which something is to be said."""
        folding = self.options.folding
        if not folding.at_once:
            return folding
        told = {finding.node.id for finding in self.report.findings if finding.node is not None}
        told.update(node for one in self.report.passes for node in one.altered)
        return replace(folding, told=frozenset(told), blamed=self.blame.nodes())

    @cached_property
    def _files(self) -> dict[str, str]:
        return short_files({origin.file for origin in self.graph.origins})

    def file(self, name: str) -> str:
        """The end of a file's path that tells it from the others, made visible."""
        return self._files[name]

    def place(self, origin: int | None) -> str:
        """``demo.py:7``, or "" for what was not seen."""
        if origin is None:
            return ""
        record: Origin = self.graph.origins[origin]
        return f"{self._files[record.file]}:{record.line}"

    @cached_property
    def _walls(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for wall in self.graph.walls:
            place = self.place(wall.origin)
            words = "grad was off at" if wall.is_by_mode and place else visible(wall.function)
            found.setdefault(wall.node, []).append(f"{words} {place}".rstrip())
        return found

    def cut(self, nodes: Iterable[int]) -> str:
        """``history cut: detach train.py:9``, where that of what these nodes took was, or ""."""
        told = listed(word for node in nodes for word in self._walls.get(node, ()))
        return told and f"history cut: {told}"

    def source(self, item: Item) -> str:
        """The line that made an item, or called it; "" for modules, which many lines made."""
        return self.place(item.origin)

    def link(self, item: Item) -> str:
        """A relative or file URL of the source file and line of an item, or "" where there is
        none."""
        if item.origin is None:
            return ""
        origin = self.graph.origins[item.origin]
        return source_url(origin.file, origin.line)

    def title(self, item: Item) -> str:
        """What an item is called, without its sign: ``Mul``, ``h.0``; ``attn`` inside ``h.*``, but
        ``h.*.2`` where that is but a number."""
        title = self._torch_names(item).get(item.title, item.title)
        inside = title.rpartition("*.")[2]
        is_named = not inside.replace(".", "").isdigit()
        name = visible(inside if item.template is not None and is_named else title)
        name = with_class(visible(item.type), name)
        if item.kind == "opaque":
            name = f"{name} · opaque"
        return name + self._scales.get(item.id, "")

    @cached_property
    def _scales(self) -> dict[int, str]:
        """What a GradScaler multiplied roots with, beside the items they are in."""
        roots = zip(self.graph.roots, self.view.roots, strict=True)
        return {
            item: f" · scale {numbers.number(root.scale)}"
            for root, item in roots
            if root.scale is not None
        }

    def _torch_names(self, item: Item) -> dict[str, str]:
        """What torch calls the operations of an item, by their short names, where that is asked."""
        if self.options.names != "torch" or item.kind in ("leaf", "module"):
            return {}
        nodes = map(self.graph.nodes.__getitem__, item.members)
        return {node.short_op: node.op for node in nodes}

    def slots(self, link: Link) -> str:
        """``[0]``: which entries of its node's ``next_functions`` the edges of a link are."""
        edges = [self.graph.edges[index] for index in link.edges]
        is_one = len({edge.source for edge in edges}) == 1
        return ", ".join(f"[{edge.slot}]" for edge in edges) if is_one else ""

    def type(self, item: Item) -> str:
        """The class of a module, or "" where the title says it already; with torch's names that of
        a leaf's node."""
        if item.kind == "leaf" and self.options.names == "torch":
            return visible(self.graph.nodes[item.members[0]].op)
        is_told = item.type == item.title or item.title.isdecimal()
        return "" if is_told else visible(item.type)

    def expression(self, item: Item) -> str:
        """The user's words for an item, ``y*2 ×9`` for a repeat; ``in net.3`` for a step of what
        the words call as a whole; for other groups without words the count of ops, of one round
        where it stands for many."""
        if item.kind == "repeat":
            # In what is drawn once it is also said for how many rounds that is.
            many = f"{item.count:,} each" if item.template is not None else f"×{item.count:,}"
            return f"{visible(one_line(item.label))} {many}{self.never_called(item)}".strip()
        if not item.folded:
            return visible(one_line(self._called_by_torch(item) or item.label))
        if item.kind in ("module", "views") and item.label:
            return visible(one_line(item.label))
        operations = self._operations(item)[: len(self._operations(item)) // self.times(item)]
        only = label_of(self.graph, self.graph.nodes[operations[0]]) if len(operations) == 1 else ""
        return visible(one_line(only)) or self.operations(item)

    def _called_by_torch(self, item: Item) -> str:
        """``in net.3``: the module that torch's own code called, as a Sequential calls its own, to
        make what is not the value of the line that called that; of many rounds what holds of most.
        Else "", and where that line is not the only one that called it."""
        made = [self.graph.nodes[node] for node in item.members]
        steps = [step for node in made if (step := self._step(node)) is not None]
        if 2 * len(steps) < len(made):
            return ""
        path = pattern([step.path for step in steps])
        if item.template is not None:
            path = path.rpartition("*.")[2]
        return "" if "…" in path or "*" in path else _within(path, steps[0].type)

    def _step(self, made: Node) -> ModuleCall | None:
        """The module that torch's own code called to make a node, if so."""
        within = [self.graph.calls[number] for number in around(self.graph.calls, made.call)]
        line = next((call for call in within if call.origin is not None), None)
        # A module of the program that is called so has lines of its own.
        if line is None or line is within[0] or line.origin != made.origin:
            return None
        if made.backward_made or line.result == made.id:
            return None
        return within[0] if self._lines_that_call[line.path] == 1 else None

    @cached_property
    def _lines_that_call(self) -> Counter[str]:
        """How many lines of the program call a module, by its path."""
        found = {(call.path, call.origin) for call in self.graph.calls if call.origin is not None}
        return Counter(path for path, _ in found)

    def never_called(self, repeat: Item) -> str:
        """`` · not called: experts.5``: what was never called of the list that a repeat is of, or
        ""."""
        # Where it stands for many rounds, `*` stands for their numbers.
        lists = [re.escape(one).replace(r"\*", r"\d+") for one in repeat.title.split(" → ")]
        paths = [path for path in self.graph.absent if any(re.fullmatch(a, path) for a in lists)]
        if not paths:
            return ""
        # The same list of a block beside the repeat is not meant.
        nodes = (self.graph.nodes[node] for one in repeat.rounds for node in one.nodes)
        called = {self.graph.calls[node.call].path for node in nodes if node.call is not None}
        around = {path: f"{path.rpartition('.')[0]}." for path in paths}
        paths = [path for path in paths if any(one.startswith(around[path]) for one in called)]
        told = visible(listed(map(short, paths), MOST_NAMED))
        return told and f" · not called: {told}"

    def arriving(self, item: Item) -> int:
        """How many gradients meet in an item that is one node; 0 where none flowed."""
        if self.gradients is None or item.folded or item.template is not None:
            return 0
        return sum(self.gradients.arrivals(item).values())

    def times(self, item: Item) -> int:
        """For how many rounds an item of a template stands; 1 for all others."""
        return len(item.rounds) if item.template is not None else 1

    def rounds_beside(self, item: Item) -> str:
        """``×11``: for how many rounds an item of a template stands, where the frame around it
        does not say the same; else ""."""
        if item.template is None or self.times(item) == self.view.templates[item.template].count:
            return ""
        return f"×{self.times(item):,}"

    def operations(self, item: Item) -> str:
        """``57 ops``: how many operations are in an item, or in each that it stands for; or leaves
        where it holds nothing else."""
        if item.kind == "leaves":
            return count(len(item.members) // self.times(item), "leaf")
        return count(len(self._operations(item)) // self.times(item), "op")

    def operations_of_rounds(self, item: Item) -> str:
        """``2,000 ops`` of a repeat whose count of rounds does not say it already, else ""."""
        each = len(self._operations(item)) // self.times(item)
        if item.kind != "repeat" or each == item.count:
            return ""
        return self.operations(item)

    def _operations(self, item: Item) -> list[int]:
        return [node for node in item.members if self.graph.nodes[node].kind != "leaf"]

    @cached_property
    def is_folded(self) -> bool:
        """Whether anything is closed in this view."""
        return any(item.folded for item in self.view.items)

    def rounds(self, item: Item) -> list[Round]:
        """The rounds of a repeat, or of what a template holds, with the gradient that enters each,
        in the order of backward."""
        if self.gradients is None or not item.rounds:
            return []
        infos = self.gradients.rounds(item)
        return [Round(one.name, info) for one, info in zip(item.rounds, infos, strict=True)]

    def round_name(self, item: Item, node: int) -> str:
        """``h.0``: in which of several rounds a node of an item is, or ""."""
        place = item.round_of().get(node) if len(item.rounds) > 1 else None
        return "" if place is None else short(item.rounds[place].name)

    def parameters(self, item: Item) -> str:
        """The gradient of the leaves inside an item in a few words, of what is drawn once for many
        rounds that in each of them; or ""."""
        if self.gradients is None or not item.folded or item.kind == "leaves":
            return ""
        once = item.template is not None
        each = [one.nodes for one in item.rounds] if once else [item.members]
        known = [self.gradients.parameters(nodes) for nodes in each]
        words = span([one for one in known if one is not None])
        return f"leaves together {words}" if words else ""

    def is_named(self, item: Item) -> bool:
        """Whether its title or its variable says which of several alike items it is."""
        has_variable = not item.folded and bool(self.graph.nodes[item.members[0]].variable)
        return item.kind == "leaf" or has_variable or self._titles[item.title] == 1

    @cached_property
    def _titles(self) -> Counter[str]:
        return Counter(item.title for item in self.view.items)

    def tensor(self, node: int, output: int) -> TensorInfo | None:
        """The forward tensor of a node's output."""
        return self.graph.nodes[node].output(output)

    def tensor_of(self, link: Link) -> TensorInfo | None:
        """The forward tensor whose gradient flows on a link, if it is one tensor."""
        ends = {(self.graph.edges[i].target, self.graph.edges[i].output) for i in link.edges}
        return self.tensor(*ends.pop()) if len(ends) == 1 else None

    @cached_property
    def to_next_round(self) -> dict[int, Link]:
        """What goes on to the next round of what is drawn once, by the item that it comes from,
        where nothing but that leaves it, as the skip around the first block of a model: as a link
        to itself."""
        items = self.view.items
        leaving = {
            link.source
            for link in self.view.links
            if items[link.target].template != items[link.source].template
            and items[link.target].kind != "leaf"
        }
        carried = self.carried
        return {item: Link(item, item, carried[item]) for item in carried if item not in leaving}

    @cached_property
    def carried(self) -> dict[int, tuple[int, ...]]:
        """The edges that lead to the next round of what is drawn once, by the item they leave."""
        items = self.view.items
        inside = {node: one.id for one in items if one.template is not None for node in one.members}
        found: dict[int, tuple[int, ...]] = {}
        for edge in (edge for template in self.view.templates for edge in template.carried):
            item = inside[self.graph.edges[edge].source]
            found[item] = (*found.get(item, ()), edge)
        return found

    def turns(self, link: Link) -> str:
        """``transposed``: what turns a leaf and stands on the link into it, or ""."""
        node = self.graph.nodes[self.graph.edges[link.edges[0]].target]
        is_turned = self.view.items[link.target].kind == "leaf" != node.kind
        words = "permuted" if node.short_op == "Permute" else "transposed"
        return words if is_turned else ""

    def of_round(self, link: Link) -> str:
        """`` of h.0``: the round of what is drawn once for many that an arrow leaves, or ""."""
        source = self.view.items[link.source]
        if source.template in (None, self.view.items[link.target].template):
            return ""
        round_of = source.round_of()
        found = {round_of[self.graph.edges[edge].source] for edge in link.edges}
        rounds = self.view.templates[source.template].rounds
        return f" of {visible(short(rounds[found.pop()].name))}" if len(found) == 1 else ""

    def to_leaf(self, link: Link) -> Link:
        """A link with what turns a leaf behind it, so that it is as the leaf gets it."""
        edges = link.edges
        while behind := [self._behind[edge] for edge in edges if edge in self._behind]:
            edges = (*(edge for edge in edges if edge not in self._behind), *behind)
        return Link(link.source, link.target, edges)

    @cached_property
    def _behind(self) -> dict[int, int]:
        """For each edge into what turns a leaf the edge behind that."""
        turning = {*self.view.on_links}
        edges = [*enumerate(self.graph.edges)]
        behind = {edge.source: at for at, edge in edges if edge.source in turning}
        return {at: behind[edge.target] for at, edge in edges if edge.target in turning}

    def values(self, info: GradientInfo | TensorInfo, sizes: tuple[int, ...] | None) -> str | None:
        """The numbers of a tensor, if they are known and few, or asked for; or why they cannot be
        known."""
        if info.values is None:
            return NOT_THERE if info.released else None
        size = numbers.element_count(info.values, info.dtype)
        small = size <= numbers.SMALL
        if not small and not self.options.values:
            return None
        # A small tensor is never elided; the columns beside it go instead.
        room = None if small else max(self.options.width // 3, 24)
        return numbers.tensor(info.values, sizes or (size,) * (size != 1), info.dtype, room)

    def told(self, info: GradientInfo, tensor: TensorInfo | None, silent: str, bad: str) -> str:
        """A gradient of a tensor: its numbers if they are known, else its state in a word."""
        values = self.values(info, tensor.shape if tensor else None) or ""
        # The sign says it even where neither colour nor the word nan is noticed.
        if values and info.state == "non-finite":
            return f"{bad} {values}"
        return state_word(info, silent, bad) or values

    @cached_property
    def factors(self) -> dict[int, str]:
        """Where the report explains, for each edge the local derivative that its gradient was
        multiplied with: of one output to one operand, element by element, and of few elements."""
        answer = self.report.explanation
        altered = set(() if self.backward is None else self.backward.altered)
        found: dict[int, str] = {}
        steps = answer.steps if answer else ()
        for one in chain.from_iterable(step.locals for step in steps):
            ends = self.graph.edges[one.edge].source, self.graph.edges[one.edge].target
            size = len(one.values)
            if size > MOST_FACTORS or altered.intersection(ends) or not (one.diagonal or size == 1):
                continue
            if len(self.graph.nodes[ends[0]].outputs) == 1:
                found[one.edge] = numbers.tensor(one.values, (size,) * (size != 1), "float32")
        return found

    def explained_value(self, tensor: TensorInfo | None) -> str:
        """Where the report explains, the value of a forward tensor of few elements."""
        if self.report.explanation is None or tensor is None or tensor.values is None:
            return ""
        few = numbers.element_count(tensor.values, tensor.dtype) <= MOST_FACTORS
        return (self.values(tensor, tensor.shape) or "") if few else ""

    def called(self, node: Node) -> str:
        """``Log`` of ``LogBackward0``, or as torch calls it where that is asked; a custom
        Function's class."""
        is_whole = node.kind == "opaque" or self.options.names == "torch"
        return visible(node.op if is_whole else node.short_op)

    def name_node(self, node: int) -> str:
        """A node in a sentence: ``Log of log(c) (demo.py:7)``, with the module that it is in where
        several calls came to that line: ``Log of log(c) in layers.3 (demo.py:7)``."""
        record = self.graph.nodes[node]
        origin = self.graph.origin_of(record)
        words = [self.called(record)]
        if origin is not None and origin.expression:
            words.append(f"of {visible(one_line(origin.expression))}")
        calls = {one.call for one in self.graph.nodes if one.origin == record.origin}
        if record.call is not None and len(calls) > 1:
            call = self.graph.calls[record.call]
            words.append(_within(visible(call.path), visible(call.type)))
        place = self.place(record.origin)
        return " ".join(words) + (f" ({place})" if place else "")

    def about(self, item: Item) -> list[Finding]:
        """The findings about nodes in this item, worst first."""
        if not self.report.findings:
            return []
        inside = set(item.members)
        found = [f for f in self.report.findings if f.node is not None and f.node.id in inside]
        return sorted(found, key=lambda finding: list(BADGES).index(finding.severity))

    def findings(self) -> list[tuple[Severity, str]]:
        """The head lines of the report's findings, each with its severity."""
        if not self.report.findings:
            return []
        from gradscope.render.words.findings import head

        return [(f.severity, head(f, self._files)) for f in self.report.findings]

    def folded(self, is_for_others: bool = False) -> str:
        """What the view does not show one by one, or ""; and how to see it, but in what is made for
        others."""
        kinds = [item.kind for item in self.view.items]
        modules, functions = kinds.count("module"), kinds.count("function")
        repeats = kinds.count("repeat")
        counted = ((modules, "module call"), (functions, "function"))
        parts = [f"{count(many, what)} closed" for many, what in counted if many]
        ways = [option("depth", "N")] if parts else []
        if views := kinds.count("views"):
            parts.append(f"{count(views, 'chain')} of views as one")
        if repeats:
            parts.append(f"{count(repeats, 'repeat')} folded")
        if parts:
            ways.append(option("all"))
        frames = self.view.templates
        words = (f"{visible(one.type) or 'a loop'} drawn once for {one.count:,}" for one in frames)
        parts += dict.fromkeys(words)
        if frames:
            ways = [*dict.fromkeys([*ways, option("all")])]
        if self.view.left_out:
            parts.append(f"{count(len(self.view.left_out), 'node')} off the path left out")
        how = [] if is_for_others or not ways else [" or ".join(ways)]
        return " · ".join([", ".join(parts), *how])

    def size(self) -> str:
        """``9 nodes``."""
        return count(len(self.graph.nodes), "node")

    def direction(self) -> str:
        """Which way to read the drawing."""
        sent = self.backward.gradients if self.backward else ()
        # A backward call that failed at its root sent none.
        is_sent = any(one.state in ("zero", "finite", "non-finite") for one in sent)
        aside = ", and up again on the left" if self.view.sides else ""
        return f"gradients {'flow' if is_sent else 'would flow'} down{aside}"

    def rank(self) -> str:
        """``rank 0 of 2``, or "" where there are none."""
        ranks = self.report.ranks
        return f"rank {ranks.shown} of {ranks.size:,}" if ranks else ""

    @property
    def is_compared(self) -> bool:
        """Whether the ranks are compared at the call that is drawn: they are at the first."""
        first = next(iter(self.report.passes), None)
        return self.report.ranks is not None and self.backward is first

    def spread(self, item: Item) -> str:
        """How far the gradients of a leaf are apart over ranks, or ""."""
        return self._spreads.get(item.title, "") if self.is_compared else ""

    @cached_property
    def _spreads(self) -> dict[str, str]:
        ranks = self.report.ranks
        if ranks is None:
            return {}
        from gradscope.render.drawing.spread import spread

        return {one.name: spread(one, ranks) for one in ranks.parameters}

    @cached_property
    def each(self) -> list[ViewGradients]:
        """The gradients of every backward call, where there are several and none was chosen."""
        passes = self.report.passes
        is_one = len(passes) < 2 or self.options.call is not None or self.report.ranks is not None
        return [] if is_one else [ViewGradients(self.graph, one, self.view) for one in passes]

    @property
    def only(self) -> str:
        """``call 1: `` before what is said of one of several backward calls; ``A: `` of a
        comparison."""
        if not self.each or not self.backward:
            return ""
        return "A: " if self.options.sides else f"call {self.backward.number}: "

    def passes(self) -> str:
        """Which of several backward passes is drawn, and how to see the others, or ""."""
        held = [backward.number for backward in self.report.passes]
        if self.backward is None or len(held) < 2:
            return ""
        which = f"backward call {self.backward.number} of {held[0]} to {held[-1]}"
        return f"{which} · another one: {option('call', 'N')}"


NOT_THERE = "its memory is not there"
"""Of a tensor whose memory the program had given back."""


def state_word(info: GradientInfo, silent: str, bad: str) -> str:
    """The state of a gradient where its numbers do not say it; "" for a finite one."""
    if info.state == "none":
        return f"{silent} no grad"
    if info.state == "not reached":
        return f"{silent} not reached"
    if info.state == "zero":
        return "0"
    if info.state == "non-finite":
        kinds = (("NaN", info.nan), ("Inf", info.inf))
        return f"{bad} " + " ".join(f"{amount:,} {word}" for word, amount in kinds if amount)
    return ""


def _chosen_pass(report: Report, call: int | None) -> BackwardPass | None:
    if call is None:
        return report.passes[0] if report.passes else None
    for backward in report.passes:
        if backward.number == call:
            return backward
    held = sorted(number for one in report.graphs for number in one.call_numbers)
    known = ", ".join(map(str, held)) or "none"
    what = f"the report holds no backward call {call}"
    raise ReportError(what, f"calls it holds: {known}")


def _within(path: str, type: str) -> str:
    """``in net.3``, ``in 3 Linear``: a number is the name of a module only beside its class; the
    outermost has no path."""
    needs_class = path.replace(".", "").isdigit() or not path
    return " ".join(filter(None, ("in", path, type * needs_class)))
