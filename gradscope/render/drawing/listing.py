"""The lines of the program that made a graph, file by file and function by function, each with what
it made.  The files that a report names may come from somebody else: what is no source of a program
is not read.

Must not know how a listing is written.
"""

from __future__ import annotations

import ast
import linecache
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from gradscope.model.report import Graph, Node, Origin, Report, around, checksum
from gradscope.render.words.text import is_of_library
from gradscope.words import first_line

MOST_BETWEEN = 3
"""Lines without a node that are shown between two that have one; of more only that they are
there."""

LARGEST_SOURCE = 2_000_000
"""Bytes; a file of more is no source that a person reads."""


@dataclass
class Made:
    """An expression, the nodes that it made, and those that made its value: of them, or where it
    called a module of what was made inside."""

    origin: Origin
    nodes: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    def is_part_of(self, other: Made) -> bool:
        """Whether this expression stands in another: ``a * b`` in ``f(a * b)``, but not that of
        ``c = a * b; f(a * b)`` which is assigned."""
        text, variable = self.origin.expression, self.origin.variable
        ways = (f"{variable} = {text}", f"{variable} := {text}") if variable else (text,)
        return any(_stands_in(way, other.origin.expression) for way in ways)


@dataclass
class SourceLine:
    """A line of a program: its text, its expressions from the whole to the parts, and the leaves
    that they take, by their positions in the graph, each with the edges on which it gets something
    from here."""

    number: int
    text: str
    pieces: list[Made] = field(default_factory=list)
    leaves: dict[int, list[int]] = field(default_factory=dict)

    @property
    def wholes(self) -> list[Made]:
        """The expressions that are part of no other: ``f(a)`` and ``g(b)`` of ``f(a), g(b)``."""
        found: list[Made] = []
        for piece in self.pieces:
            if not any(piece.is_part_of(one) for one in found):
                found.append(piece)
        # Ids are in the order of backward, and the program ran the other way.
        return sorted(found, key=lambda piece: -max(piece.nodes or piece.results, default=0))

    def within(self, whole: Made) -> list[Made]:
        """An expression and those that are parts of it."""
        return [one for one in self.pieces if one is whole or one.is_part_of(whole)]


@dataclass
class SourceFunction:
    """A function that made nodes, or the module level: its lines, with None where some are left
    out."""

    file: str
    name: str
    lines: list[SourceLine | None]

    @property
    def pieces(self) -> list[Made]:
        """All its expressions, line by line."""
        return [piece for line in self.lines if line is not None for piece in line.pieces]


def listing(report: Report, wanted: Collection[int]) -> Iterator[SourceFunction]:
    """The functions that made the wanted nodes of a graph, or if these are all that something was
    found in, in the order of the source; those of installed packages last, and of these first the
    files that most lines are of."""
    made = _lines_made(report.graph, wanted)
    if len(wanted) == len(report.graph.nodes):
        places = [one.location for one in report.findings if one.location is not None]
        found = {(place.file, place.line, place.expression) for place in places}
        for at in report.graph.origins:
            if (at.file, at.line, at.expression) in found:
                made.setdefault((at.file, at.line), SourceLine(at.line, "", [Made(at)]))
    many = Counter(file for file, _ in made)
    files = sorted(many, key=lambda file: is_of_library(file) and 1 / many[file])
    for file in files:
        own = {line: one for (name, line), one in made.items() if name == file}
        origins = [piece.origin for one in own.values() for piece in one.pieces]
        text = _text(file, origins, report.graph.sources.get(file))
        for number, one in own.items():
            one.text = text[number - 1] if text else first_line(one.pieces[0].origin.expression)
        spans = _spans(text)
        functions: dict[tuple[int, str], list[int]] = {}
        for number in sorted(own):
            begin = max((first for first, last in spans if first <= number <= last), default=0)
            name = own[number].pieces[0].origin.function
            functions.setdefault((begin, name), []).append(number)
        for (begin, name), numbers in functions.items():
            head = [SourceLine(begin, text[begin - 1])] if begin and begin < numbers[0] else []
            shown = [*head, *(own[number] for number in numbers)]
            yield SourceFunction(file, name, list(_with_others(shown, text)))


def _lines_made(graph: Graph, wanted: Collection[int]) -> dict[tuple[str, int], SourceLine]:
    """The lines that made these nodes, file by file in the order of their first."""
    pieces: dict[int, Made] = {}
    for node in graph.nodes:
        if node.line is not None and node.kind != "leaf" and node.id in wanted:
            piece = pieces.setdefault(node.line, Made(graph.origins[node.line]))
            piece.nodes.append(node.id)
    for wall in graph.walls:
        # What made no node is seen as well where it cut the history of what another line took.
        if wall.origin is not None and wall.node in wanted:
            pieces.setdefault(wall.origin, Made(graph.origins[wall.origin]))
    calls = _called(graph)
    for called, each in calls.items():
        seen = sorted(node for node in each.values() if node in wanted)
        if seen:
            pieces.setdefault(called, Made(graph.origins[called])).results = seen
    used = {root.node for root in graph.roots}
    for edge in graph.edges:
        source, target = graph.nodes[edge.source], graph.nodes[edge.target]
        # What the next of equal modules takes is used, too, though the line is the same.
        is_of_next = source.call != target.call and source.op == target.op
        if source.line != target.line or source.line is None or is_of_next:
            used.add(edge.target)
    lines: dict[tuple[str, int], SourceLine] = {}
    for number, piece in pieces.items():
        # What torch's own modules make stands at the line that calls them, and is but a part.
        told = calls.get(number, {})
        made_in = ((node, around(graph.calls, graph.nodes[node].call)) for node in piece.nodes)
        own = [node for node, within in made_in if not told or told.keys().isdisjoint(within)]
        named = [node for node in own if graph.nodes[node].variable]
        # Of `h, c = cell(x)` in a loop only the last c is known by its name.
        variable = piece.origin.variable
        assigned = [node for node in named if graph.nodes[node].variable == variable]
        named = assigned if len(assigned) > 1 else named
        # What an expression made is assigned, or used by another one; the rest are its parts.  Of
        # several evaluations the last may be the only one whose value still has a name.
        alike = {graph.nodes[node].op for node in named or own}
        others = (node for node in own if node in used and graph.nodes[node].op in alike)
        if own:
            is_derived = graph.nodes[own[0]].backward_made
            made = {*named, *others, *(() if is_derived else _rounds(graph, own))}
            piece.results = sorted(made.union(piece.results))
        place = piece.origin.file, piece.origin.line
        lines.setdefault(place, SourceLine(piece.origin.line, "")).pieces.append(piece)
    for line in lines.values():
        line.pieces.sort(key=lambda piece: -len(piece.origin.expression))
    numbers = {leaf.node: position for position, leaf in enumerate(graph.leaves)}
    taken: dict[tuple[str, int], dict[int, list[int]]] = {}
    for at, edge in enumerate(graph.edges):
        origin = graph.nodes[edge.source].line
        if edge.target in numbers and edge.source in wanted and origin is not None:
            place = graph.origins[origin].file, graph.origins[origin].line
            taken.setdefault(place, {}).setdefault(numbers[edge.target], []).append(at)
    for place in taken.keys() & lines.keys():
        lines[place].leaves = taken[place]
    return lines


def _called(graph: Graph) -> dict[int, dict[int, int]]:
    """For each origin at which modules were called, these calls with the nodes that made their
    results."""
    found: dict[int, dict[int, int]] = {}
    for number, call in enumerate(graph.calls):
        if call.origin is not None and call.result is not None:
            found.setdefault(call.origin, {})[number] = call.result
    return found


def _rounds(graph: Graph, nodes: Sequence[int]) -> Sequence[int]:
    """The last node of each evaluation of an expression that was fed with its own value, as in a
    function that returns ``x * w`` and is called in a loop; none where it was evaluated once."""

    def alike(node: Node) -> tuple[str, str]:
        return node.op, "" if node.call is None else graph.calls[node.call].path

    kinds = [alike(graph.nodes[node]) for node in nodes]
    # Of each beginning, how long a shorter beginning ends it as well (Knuth, Morris and Pratt): a
    # library's whole model may be one expression.
    ends = [0]
    for kind in kinds[1:]:
        known = ends[-1]
        while known and kinds[known] != kind:
            known = ends[known - 1]
        ends.append(known + (kinds[known] == kind))
    length = len(kinds) - ends[-1]
    return nodes[::length] if 2 * length <= len(kinds) else ()


def source_lines(file: str) -> list[str]:
    """The lines of a Python file as it is now; none of anything else, or of what cannot be read."""
    # Asking for a file on another machine would tell that machine who asks.
    if not file.endswith(".py") or file.startswith(("//", "\\\\")):
        return []
    path = Path(file)
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_SOURCE:
            return []
        # As python reads it: by its cookie, and without a mark of the order of bytes.
        with tokenize.open(path) as text:
            return text.read().split("\n")
    except (OSError, ValueError, SyntaxError):
        return []


def stands_in(origin: Origin, lines: Sequence[str]) -> bool:
    """Whether the expression of an origin begins at its line."""
    begins = first_line(origin.expression)
    return bool(begins and 0 < origin.line <= len(lines) and begins in lines[origin.line - 1])


def _text(file: str, origins: Sequence[Origin], known: int | None) -> list[str]:
    """The lines of a file as it was when it ran, or of a notebook's cell; none where it is gone, or
    is another by now."""
    lines = source_lines(file)
    if lines and known not in (None, checksum("\n".join(lines))):
        return []
    # What was compiled from no file may be known by its name.
    if not lines and file in linecache.cache and not Path(file).exists():
        lines = [line.rstrip("\n") for line in linecache.getlines(file)]
    # Of which no expression is known may be any file, of whoever reads a report of somebody else.
    return lines if all(stands_in(one, lines) for one in origins) else []


def _stands_in(way: str, whole: str) -> bool:
    """Whether a text is a part of an expression by itself, as ``x * w`` is not of ``x * w.t()``."""
    at = whole.find(way)
    while at >= 0:
        end = at + len(way)
        if not (_is_in_word(whole, at) or _is_in_word(whole, end)):
            parts = _parts(whole)
            begin = len(whole[:at].encode())
            if parts is None or (begin, begin + len(way.encode())) in parts:
                return True
        at = whole.find(way, at + 1)
    return False


def _is_in_word(text: str, place: int) -> bool:
    """Whether a word or number goes on there, which is known without a look at the syntax."""
    around = text[max(place - 1, 0) : place + 1].replace("_", "x")
    return len(around) == 2 and around.isalnum()


@lru_cache(maxsize=64)
def _parts(expression: str) -> frozenset[tuple[int, int]] | None:
    """Where all parts of an expression begin and end, in bytes; None where it cannot be parsed."""
    # What goes over several lines stood in parentheses.
    tree = _parsed(f"(\n{expression}\n)")
    shift = 1 if tree else 0
    tree = tree or _parsed(expression)
    if tree is None:
        return None
    begins = [0, *accumulate(len(line.encode()) + 1 for line in expression.split("\n"))]
    kinds = ast.expr, ast.stmt
    return frozenset(
        (
            begins[node.lineno - 1 - shift] + node.col_offset,
            begins[(node.end_lineno or node.lineno) - 1 - shift] + (node.end_col_offset or 0),
        )
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.lineno > shift
    )


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a notebook's magics
        return None


def _spans(text: Sequence[str]) -> list[tuple[int, int]]:
    """The first and the last line of each function."""
    tree = _parsed("\n".join(text))
    kinds = ast.FunctionDef, ast.AsyncFunctionDef
    found = [node for node in ast.walk(tree) if isinstance(node, kinds)] if tree else []
    return [(node.lineno, node.end_lineno or node.lineno) for node in found]


def _with_others(shown: Sequence[SourceLine], text: Sequence[str]) -> Iterator[SourceLine | None]:
    """These lines, and the few between them."""
    for position, line in enumerate(shown):
        if position and text:
            before = shown[position - 1].number
            between = range(before + 1, line.number)
            if len(between) > MOST_BETWEEN:
                yield None
            else:
                yield from (SourceLine(number, text[number - 1]) for number in between)
        yield line
