"""The Report: what one look at an autograd graph found, as plain data.

This is the wall in the middle of the house. Left of it live torch objects, right of it only what is
defined here: strictly typed, frozen, without a tensor, module or callable inside, so that it can be
saved, compared and drawn again by a process that never imports torch. It must know nothing of
torch, of how the data was captured, or of how it is drawn.

Names and source text are kept raw; only renderers escape. The encoding is in
:mod:`gradscope.model.storage`, the invariants are in :mod:`gradscope.model.invariants`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from gradscope import model
from gradscope.model.plain import Accumulation as Accumulation
from gradscope.model.plain import BackwardPass as BackwardPass
from gradscope.model.plain import CallId, NodeId, Norm, Number, OriginId, Struct, TensorInfo
from gradscope.model.plain import GradientInfo as GradientInfo
from gradscope.model.plain import Histogram as Histogram
from gradscope.model.plain import State as State
from gradscope.words import either, short_op

FORMAT: Final = "gradscope/1"
"""Version of the saved form.  History: gradscope/1, the first."""

Kind = Literal["op", "leaf", "custom", "opaque"]
"""A built-in backward node, an AccumulateGrad, a user's autograd.Function, a node that hides
others."""


class Origin(Struct, frozen=True):
    """The place in the user's program that made something.

    ``expression`` is the exact source text of the call or operator, ``variable`` the target the
    value of that expression was assigned to ("" if none).  Lines count from 1.
    """

    file: str
    line: int
    expression: str = ""
    variable: str = ""
    function: str = ""

    def __str__(self) -> str:
        """``model.py:7``."""
        return f"{self.file}:{self.line}"

    @property
    def label(self) -> str:
        """``y = 3*a``; ``3*a`` where its value is assigned to nothing."""
        return f"{self.variable} = {self.expression}" if self.variable else self.expression


class ModuleCall(Struct, frozen=True):
    """One call of an ``nn.Module``: its dotted path from the root module, its class, the call it
    was in, and as an index into the graph's table of origins the line that called it, None where
    torch's own code did.  ``result`` is the node that made the tensor which it returned, None where
    the graph has not that, or it returned several that the line uses."""

    path: str
    type: str
    parent: CallId | None = None
    origin: OriginId | None = None
    result: NodeId | None = None


def around(calls: Sequence[ModuleCall], number: int | None) -> Iterator[int]:
    """The numbers of a module call and of those that it was made in, the innermost first; nothing
    for None."""
    while number is not None:
        yield number
        number = calls[number].parent


TURNS = frozenset({"T", "Transpose", "Permute"})
"""Operations whose gradient has the same elements as what arrives, in another order."""


class Node(Struct, frozen=True):
    """A node of the graph that backward walks.

    ``op`` is torch's name of the node (``MulBackward0``), or the user's class for a custom
    Function. ``outputs`` describes the forward tensors whose gradients the node receives, one for
    each output number, None where torch knows nothing of it.  ``origin`` and ``call`` index the
    graph's tables. ``variable`` is set on the node that made the final value of its origin's
    expression. ``backward_made`` marks nodes made by a backward pass that ran with
    ``create_graph``; ``origin`` is then that of what they differentiate, ``derived`` that of the
    call which ran the pass. ``saved`` names the tensors kept for backward, where asked for.
    """

    id: int
    op: str
    kind: Kind = "op"
    outputs: tuple[TensorInfo | None, ...] = ()
    origin: OriginId | None = None
    call: CallId | None = None
    variable: str = ""
    backward_made: bool = False
    derived: OriginId | None = None
    saved: tuple[tuple[str, TensorInfo], ...] = ()

    @property
    def line(self) -> int | None:
        """The origin of the line that made it."""
        return self.derived if self.backward_made else self.origin

    @property
    def short_op(self) -> str:
        """``Mul`` of ``MulBackward0``; a custom Function keeps its name, whatever it ends with."""
        return self.op if self.kind == "custom" else short_op(self.op)

    def output(self, number: int) -> TensorInfo | None:
        """The forward tensor whose gradient the node receives at an output."""
        return self.outputs[number] if number < len(self.outputs) else None


class Edge(Struct, frozen=True, array_like=True):
    """A gradient's way: from input ``slot`` of node ``source`` to output number ``output`` of
    ``target``."""

    source: NodeId
    slot: int
    target: NodeId
    output: int


class Leaf(Struct, frozen=True):
    """A leaf tensor (one AccumulateGrad), with every name by which the program knows it, best
    first.

    ``norm`` is the 2-norm of its values when a gradient was sent through; None where nobody looked.
    """

    node: NodeId
    names: tuple[str, ...]
    tensor: TensorInfo
    origin: OriginId | None = None
    norm: Norm | None = None

    @property
    def name(self) -> str:
        """The best of its names; without one the number of its node: ``#3``."""
        return self.names[0] if self.names else f"#{self.node}"


class Root(Struct, frozen=True):
    """Where backward starts: an output of a node, and the text that names that tensor.

    ``scale``: a GradScaler made it, by multiplying the loss with this.
    """

    node: NodeId
    output: int
    label: str = ""
    scale: Number | None = None


class Wall(Struct, frozen=True):
    """Where gradients end: the call that made a node took a value that was computed from tensors
    with a history, and itself has none.  ``function`` cut it (``detach``), or a mode, ``no grad``,
    that some other line may have set.
    """

    node: NodeId
    function: str
    origin: OriginId | None = None

    @property
    def is_by_mode(self) -> bool:
        """Whether a mode cut it."""
        return self.function == "no grad"


class Graph(Struct, frozen=True):
    """Nodes in topological order (roots first), edges from lower to higher ids, and shared
    tables.  ``absent`` are the paths of modules that were never called, though others of their list
    were, and no parameter of which is used.  ``sources`` has a checksum of each file of the origins
    as it was when it was first read, see :func:`checksum`."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    leaves: tuple[Leaf, ...]
    roots: tuple[Root, ...]
    origins: tuple[Origin, ...] = ()
    calls: tuple[ModuleCall, ...] = ()
    walls: tuple[Wall, ...] = ()
    absent: tuple[str, ...] = ()
    sources: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def scale(self) -> float | None:
        """What a GradScaler has multiplied every root with, and so every gradient; None where none
        did, or not by one number."""
        scales = {root.scale for root in self.roots}
        (scale,) = scales if len(scales) == 1 else (None,)
        return None if scale is None else float(scale)

    def origin_of(self, node: Node) -> Origin | None:
        """The place that made this node, or None when it was not seen."""
        return None if node.origin is None else self.origins[node.origin]

    def edges_to(self, ends: Mapping[int, int]) -> set[int]:
        """The edges of all ways from the roots to tensors that are given as ``{node: output}``."""
        found: set[int] = set()
        passed: set[int] = set()
        for number in range(len(self.edges) - 1, -1, -1):
            edge = self.edges[number]  # sorted by source, so targets are decided before
            if edge.target in passed or ends.get(edge.target) == edge.output:
                found.add(number)
                passed.add(edge.source)
        return found

    def module_of(self, node: Node) -> str:
        """The dotted path of the module in whose call this node was made, or ""."""
        return "" if node.call is None else self.calls[node.call].path


def only_arrival(
    graph: Graph, backward: BackwardPass, node: NodeId
) -> tuple[GradientInfo, GradientInfo] | None:
    """The one gradient that came to a node, and what it received, which a hook may have put in its
    place; None where several came, or one was given."""
    came = [number for number, edge in enumerate(graph.edges) if edge.target == node]
    if len(came) != 1 or any(root.node == node for root in graph.roots):
        return None
    return backward.on_edge(came[0]), backward.at(node, graph.edges[came[0]].output)


def checksum(text: str) -> int:
    """The CRC-32 of a file's text, whichever way its lines end, and however it ends."""
    return zlib.crc32("\n".join(text.splitlines()).rstrip().encode("utf-8", "replace"))


class Meta(Struct, frozen=True):
    """Where the report comes from; the only part that may differ between two equal runs."""

    gradscope: str
    torch: str = ""
    python: str = ""
    target: str = ""
    created: str = ""


class Report(Struct, frozen=True):
    """A graph, the gradients seen on it, and what there is to say about the run.

    ``notes`` are whole sentences for the reader: how the program ended, what could not be seen.
    ``ranks`` is there where several processes worked together, and told one another.
    ``others`` are further backward calls of the run, which walk other graphs: each of these reports
    is one graph with its calls, and has no ``others``.
    """

    graph: Graph
    meta: Meta
    passes: tuple[BackwardPass, ...] = ()
    notes: tuple[str, ...] = ()
    observations: model.observations.Watched | None = None
    findings: tuple[model.observations.Finding, ...] = ()
    checks: model.studies.Checks | None = None
    memory: model.studies.Memory | None = None
    explanation: model.explanation.Explanation | None = None
    split: model.studies.Split | None = None
    dependence: model.studies.Dependence | None = None
    ranks: model.ranks.Ranks | None = None
    others: tuple[Report, ...] = ()
    format: Literal["gradscope/1"] = FORMAT

    @property
    def graphs(self) -> tuple[Report, ...]:
        """Return a report of this graph alone, and one of each other, all with this ``meta``."""
        alone = msgspec.structs.replace(self, others=()) if self.others else self
        others = (msgspec.structs.replace(other, meta=self.meta) for other in self.others)
        return (alone, *others)

    def of_target(self, target: str) -> Report:
        """The report under another name of its program."""
        meta = msgspec.structs.replace(self.meta, target=target)
        return msgspec.structs.replace(self, meta=meta)

    @property
    def call_numbers(self) -> list[int]:
        """The numbers of the backward calls on this graph."""
        return [one.number for one in self.passes]

    @property
    def line_of_call(self) -> tuple[str, int] | None:
        """File and line of its first backward call, if there is one and its line is known."""
        if not self.passes or self.passes[0].origin is None:
            return None
        origin = self.graph.origins[self.passes[0].origin]
        return origin.file, origin.line

    def holding(self, call: int | None) -> Report:
        """The report of the graph that a backward call walks, with the rest as its others; this
        one where that is it, or where none of them has the call."""
        for other in self.graphs[1:]:
            if call in other.call_numbers and call not in self.call_numbers:
                rest = tuple(one for one in self.graphs if one.call_numbers != other.call_numbers)
                return msgspec.structs.replace(other, others=rest)
        return self


COMPILED = "CompiledFunction"
"""What torch.compile makes."""

_SCRIPTED = "run with PYTORCH_JIT=0 in the environment"
_STANCE = 'torch.compiler.set_stance("force_eager")'
_INSIDE = {
    COMPILED: f"run with {_STANCE}",
    "CheckpointFunction": "give checkpoint use_reentrant=False",
    "DifferentiableGraph": _SCRIPTED,
    "ScriptFunction": _SCRIPTED,
}
"""Parts of their names, and what makes their operations nodes of the graph."""


def is_opaque(name: str) -> bool:
    """Whether a node with torch's name for it hides operations."""
    return any(part in name for part in _INSIDE)


def way_inside(name: str) -> str:
    """What to do to see the operations behind such a node: ``run with --eager (…)``."""
    if COMPILED in name:
        return either(f"run with --eager ({_STANCE})", _INSIDE[COMPILED])
    return next(way for part, way in _INSIDE.items() if part in name)
