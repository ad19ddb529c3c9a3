"""From live nodes and what was recorded about them to the plain Graph and BackwardPass of the
Report, and the values of small forward tensors as it stores them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any

import msgspec
import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd.calls import edge_of
from gradscope.autograd.elements import is_small
from gradscope.autograd.nodes import (
    LEAF,
    NO_SEQUENCE,
    Walked,
    is_leaf,
    is_nested,
    leaf_of,
    op_name,
    outputs_of,
    torch_name,
    without_namespace,
)
from gradscope.autograd.numbers import SMALL, plain
from gradscope.autograd.summary import device_name, flat_values, metadata, name_of
from gradscope.autograd.tensors import grad_fn_of
from gradscope.graphing.edge_gradients import EdgeGradients
from gradscope.graphing.gradient_table import MAX_VALUES
from gradscope.model.invariants import differences
from gradscope.model.plain import RAGGED, TensorInfo
from gradscope.model.plain import number as stored
from gradscope.model.report import (
    TURNS,
    Accumulation,
    BackwardPass,
    Edge,
    Graph,
    Kind,
    Leaf,
    ModuleCall,
    Node,
    Origin,
    Root,
    Wall,
    around,
    is_opaque,
)
from gradscope.recording.modules import OUTSIDE, ModuleTracker
from gradscope.recording.names import ModuleNames, Scopes
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site
from gradscope.recording.torch_call import SequenceSpan


@dataclass
class Assembler:
    """Builds the Graph of one walk.

    ``keep``: values of forward tensors with at most this many elements are kept; ``saved``:
    describe the tensors that each node saved for backward.
    """

    walked: Walked
    recorder: Recorder
    scopes: Scopes
    keep: int = SMALL
    saved: bool = False
    _origins: dict[Origin, int] = field(default_factory=dict)
    _variables: list[str] = field(default_factory=list)
    _statements: set[int] = field(default_factory=set)
    _sites: dict[tuple[str, Site], int] = field(default_factory=dict)
    _by_place: dict[int, int | None] = field(default_factory=dict)
    _calls: list[ModuleCall] = field(default_factory=list)
    _call_numbers: dict[int, int] = field(default_factory=dict)
    _infos: dict[tuple[Any, ...], TensorInfo] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._values = self.recorder.values.by_sequence()
        self._left = max(MAX_VALUES, self.keep)
        self.module_names = ModuleNames(self.scopes, self.recorder.modules)
        self.held = self._held()
        """The tensors that variables hold, by the node that made them and its output."""
        self.hooked_edges: set[int] = set()
        """The edges on which the hook of a module put another gradient."""
        held = ((node, one) for (node, output), one in self.held.items() if not output)
        self._live_names = {node: self.scopes.names(one)[0] for node, one in held}

    def graph(self, roots: Iterable[Any]) -> Graph:
        """The whole graph, with these live roots."""
        nodes = list(map(self._node, count(), self.walked.nodes, self.walked.sequences))
        for number in [*self._inner_results(nodes), *self._in_objects(nodes)]:
            name = self._live_names.get(number, "")
            nodes[number] = msgspec.structs.replace(nodes[number], variable=name)
        leaves = [
            self._leaf(node, live)
            for node, live in zip(nodes, self.walked.nodes, strict=True)
            if node.kind == "leaf"
        ]
        return Graph(
            nodes=tuple(nodes),
            edges=tuple([Edge(*edge) for edge in self.walked.edges]),
            leaves=tuple(leaves),
            roots=tuple(self._root(root) for root in roots),
            calls=self._with_results(nodes),
            walls=tuple(self._walls()),
            origins=self.origins(),  # last: the others add to these
            sources=self.recorder.sources.checksums({one.file for one in self._origins}),
        )

    def _with_results(self, nodes: Sequence[Node]) -> tuple[ModuleCall, ...]:
        """The calls, each with the node that made what it returned."""
        made = zip(self.walked.sequences, nodes, strict=True)
        made_at = {sequence: node for sequence, node in made if node.kind != "leaf"}
        # What arrives at one of several outputs is not what arrives at the node.
        several = {target for _, _, target, output in self.walked.edges if output}
        origins, found = self.origins(), list[ModuleCall]()
        for number, call in zip(self._call_numbers, self._calls, strict=True):
            parts = self.recorder.modules.result(number)
            variable = "" if call.origin is None else origins[call.origin].variable
            names = [name.strip() for name in variable.split(",")]
            # Of `_, loss = model(x)` the second is meant, of a single name the only tensor.
            named = enumerate(names if len(names) > 1 else parts)
            meant = [part for part, one in named if one not in ("", "_", -1)]
            is_clear = len(meant) == 1 and meant[0] < len(parts)
            node = made_at.get(parts[meant[0]]) if is_clear else None
            # What was there before is returned, not made.
            is_own = node is not None and len(found) in around(self._calls, node.call)
            if node is not None and is_own and node.id not in several:
                call = msgspec.structs.replace(call, result=node.id)
            found.append(call)
        return tuple(found)

    def origins(self) -> tuple[Origin, ...]:
        """The table that all indices given out so far point into."""
        return tuple(self._origins)

    def origin(self, site: Site | None) -> int | None:
        """The index of a place in the graph's table of origins."""
        if site is None:
            return None
        # To python equal code is one, from whichever file it was compiled.
        key = site.code.co_filename, site
        known = self._sites.get(key)
        if known is None:
            place = self.recorder.sources.origin(site)
            known = self._sites[key] = self._origins.setdefault(place, len(self._origins))
            # Two instructions may have one origin, and the lists must not part.
            if known == len(self._variables):
                self._variables.append(place.variable)
            if self.recorder.sources.is_statement(site):
                self._statements.add(known)
        return known

    def _walls(self) -> Iterator[Wall]:
        walls = self.recorder.events.walls
        numbers = {
            sequence: at for at, sequence in enumerate(self.walked.sequences if walls else ())
        }
        known = sorted(numbers)
        for first, last, cut in dict.fromkeys(walls):
            # Of a call of several nodes the last that is there: others may be of what nobody used.
            found = bisect_right(known, last) - 1
            if found >= 0 and known[found] >= first:
                function = cut.function if cut.grad_enabled else "no grad"
                yield Wall(numbers[known[found]], function, self.origin(cut.site))

    # ------------------------------------------------------------------ nodes

    def _node(self, number: int, live: LiveNode, sequence: int) -> Node:
        if sequence >= NO_SEQUENCE:
            if is_leaf(live):
                return Node(number, LEAF, "leaf", self._leaf_outputs(number, live))
            # No call made it, so no expression and no module is its own.
            return Node(number, op_name(live), "op", self._outputs(number, live))
        span = self.recorder.span_of(sequence)
        origin = self._origin_at(self.recorder.place_of(sequence))
        op, kind = _op_and_kind(live)
        is_derived = span is not None and span.is_backward
        return Node(
            id=number,
            op=op,
            kind=kind,
            outputs=self._outputs(number, live),
            origin=origin,
            call=self._call(self.recorder.modules.call_of(sequence)),
            variable=self._variable(number, span, sequence, origin),
            backward_made=is_derived,
            derived=self._origin_at(span.place) if span and is_derived else None,
            saved=tuple(self._saved(live)) if self.saved else (),
        )

    def _origin_at(self, place: int) -> int | None:
        if place not in self._by_place:
            self._by_place[place] = self.origin(self.recorder.places.site(place))
        return self._by_place[place]

    def _variable(
        self, number: int, span: SequenceSpan | None, sequence: int, origin: int | None
    ) -> str:
        if origin in self._statements:
            return ""  # `y[0] = 3` says itself what it changes
        if span is not None and (span.forward >= 0 or span.is_backward):
            # Its expression is that of a forward node, whose result has that variable, or that of
            # the backward call, which made all the sums on the way as well.
            return self._live_names.get(number, "")
        is_result = span is not None and sequence == span.end - 1
        assigned = self._variables[origin] if is_result and origin is not None else ""
        return assigned or self._live_names.get(number, "")

    def _inner_results(self, nodes: Sequence[Node]) -> Iterator[int]:
        """Nodes that look like the value of `y = model(x)`, but went into another layer of it."""
        calls = list(self._call_numbers)
        for source, _, target, _ in self.walked.edges:
            user, node = nodes[source], nodes[target]
            if not node.variable or node.origin is None or node.origin != user.origin:
                continue
            if user.call is not None and node.call is not None:
                outermost = self.recorder.modules.library_call(calls[node.call])
                if OUTSIDE != outermost == self.recorder.modules.library_call(calls[user.call]):
                    yield target

    def _in_objects(self, nodes: Sequence[Node]) -> Iterator[int]:
        """Nodes made for an object that their variable holds, `dist = Categorical(logits=x)`: the
        result is `dist.logits`, or nothing that has a name."""
        made = {
            nodes[number].origin
            for number, name in self._live_names.items()
            if nodes[number].variable and name.startswith(f"{nodes[number].variable}.")
        }
        yield from (node.id for node in nodes if node.variable and node.origin in made)

    def _outputs(self, number: int, live: LiveNode) -> tuple[TensorInfo | None, ...]:
        described = outputs_of(live)
        if len(described) == 1:  # nearly all
            return (self._output(number, 0, described[0]),)
        return tuple([self._output(number, output, one) for output, one in enumerate(described)])

    def _leaf_outputs(self, number: int, live: Any) -> tuple[TensorInfo | None, ...]:
        # Torch keeps no metadata for an AccumulateGrad; the tensor itself says more anyway.
        tensor = live.variable
        if tensor is None:
            return self._outputs(number, live)
        numbers = flat_values(tensor) if is_small(tensor, self.keep) else None
        return (self._with_values(metadata(tensor), numbers),)

    def _output(self, number: int, output: int, described: Any) -> TensorInfo:
        shape = (RAGGED,) if is_nested(described) else tuple(map(int, described.shape))
        key = (shape, described.dtype, described.device)
        # Most nodes of a large graph share a few shapes, and the saved report shares them too.
        info = self._infos.get(key)
        if info is None:
            info = TensorInfo(shape, name_of(described.dtype), device_name(described.device))
            self._infos[key] = info
        kept = self._values.get(self.walked.sequences[number], ())
        last = next((one for one in reversed(kept) if one.output == output), None)
        # A result is filed under the last node of its call; one of another kind is not this node's.
        fits = last is not None and (last.shape, last.dtype) == (shape, described.dtype)
        return self._with_values(info, last.numbers() if last and fits else None)

    def _with_values(self, info: TensorInfo, numbers: list[float] | None) -> TensorInfo:
        """The same with these elements, as long as there is room for them."""
        self._left -= len(numbers or ())
        if numbers is None or self._left < 0:
            return info
        return msgspec.structs.replace(info, values=plain(numbers, info.dtype == "float32"))

    def _call(self, call: int) -> int | None:
        if call == OUTSIDE:
            return None
        if call not in self._call_numbers:
            self._add_calls(call)
        return self._call_numbers[call]

    def _add_calls(self, call: int) -> None:
        modules = self.recorder.modules
        # Outer calls get their numbers first; the chain replaces a recursion over nested modules.
        chain = []
        while call != OUTSIDE and call not in self._call_numbers:
            chain.append(call)
            call = modules.parent(call)
        around = self._call_numbers.get(call)
        for inner in reversed(chain):
            place = modules.place(inner)
            path, kind = (
                ("?", "?") if place is None else (self.module_names.path(place), place.type)
            )
            origin = self._origin_at(modules.site(inner))
            self._calls.append(ModuleCall(path, kind, around, origin))
            around = self._call_numbers[inner] = len(self._calls) - 1

    def _saved(self, live: LiveNode) -> Iterable[tuple[str, TensorInfo]]:
        from gradscope.autograd.saved import values

        for name, tensor in values(live):
            if isinstance(tensor, torch.Tensor):
                held = None
                if is_small(tensor, self.keep):
                    held = plain(flat_values(tensor), tensor.dtype is torch.float32)
                yield name, metadata(tensor, held)

    # ------------------------------------------------------------------ leaves and roots

    def _leaf(self, node: Node, live: Any) -> Leaf:
        tensor, info = live.variable, node.outputs[0]
        if tensor is None or info is None:
            return Leaf(node.id, (), TensorInfo((), "?"))
        names = self._names_of(tensor)
        site = self.recorder.events.leaf_site(tensor)
        # The line that made it may have made a whole module, so it is asked last.
        if site is not None and not any(names):
            names.append(self.recorder.sources.origin(site).variable)
        return Leaf(node.id, tuple(filter(None, names)), info, self.origin(site))

    def _names_of(self, tensor: torch.Tensor) -> list[str]:
        """What the program calls a leaf."""
        names = [
            *self.module_names.parameters.get(id(tensor), ()),
            *self.scopes.names(tensor),
            *self.recorder.leaf_names.of(tensor),
        ]
        # Its module is gone, or its name would be among them.
        names = names or [self.recorder.modules.parameter_name(tensor)]
        return list(filter(None, dict.fromkeys(names)))

    def _root(self, root: Any) -> Root:
        node, output = edge_of(root)
        names = self.scopes.names(root) if isinstance(root, torch.Tensor) else []
        scale = self.recorder.scaled.factor(root)
        label = names[0] if names else ""
        return Root(
            self.walked.index[node], output, label, None if scale is None else stored(scale)
        )

    def with_hooks(self, backward: BackwardPass) -> BackwardPass:
        """The pass, with the hooks that changed a gradient of it, as far as they still hang on a
        tensor that is in sight, or on a module."""
        if not backward.altered:
            return backward
        modules = hooked_modules(self.walked, self.recorder.modules, self.hooked_edges)
        hooks = (
            self._hook_on(
                leaf_of(self.walked.nodes[node]),
                *(self.held.get((node, output)) for output in range(len(backward.upstream[node]))),
                modules.get(node),
            )
            for node in backward.altered
        )
        return msgspec.structs.replace(backward, hooks=tuple(hooks))

    def _hook_on(self, *owners: Any) -> str:
        from gradscope.recording.hook_codes import codes_of, only_hook

        code = next(codes_of(only_hook(*owners)), None)
        if code is None:
            return ""
        file = self.recorder.sources.display_name(code.co_filename)
        return f"{file}:{code.co_firstlineno}"

    def _held(self) -> dict[tuple[int, int], torch.Tensor]:
        found: dict[tuple[int, int], torch.Tensor] = {}
        for tensor in self.scopes.held_tensors():
            # Asking a view for its grad_fn may make a new node, which is not walked.
            made = grad_fn_of(tensor)
            position = None if made is None else self.walked.index.get(made)
            if position is not None:
                found.setdefault((position, tensor.output_nr), tensor)
        return found


def hooked_modules(
    walked: Walked, modules: ModuleTracker, hooked: Iterable[int]
) -> dict[int, torch.nn.Module]:
    """The modules whose hooks put another gradient on these edges, by the nodes that get it."""
    met = {place: module for module, place in modules.met()}
    behind = {
        target: modules.place(modules.call_of(walked.nodes[source]._sequence_nr()))
        for source, _, target, _ in map(walked.edges.__getitem__, hooked)
    }
    return {node: met[place] for node, place in behind.items() if place in met}


def _is_transposed(node: Node) -> bool:
    shapes = [len(one.shape) for one in node.outputs if one]
    return node.short_op in TURNS and shapes == [2]


def backward_pass(
    edge_gradients: EdgeGradients, graph: Graph, seeds: Sequence[int], error: str
) -> BackwardPass:
    """The finished pass, with the leaves' new gradients and nothing accumulated yet; ``error`` is
    what ended it, if anything did."""
    gradients = list(edge_gradients.table.finish())
    for edge, entry in zip(graph.edges, edge_gradients.edges, strict=True):
        # Of a matrix that is transposed, as Linear does with its weight, the rows are columns.
        if gradients[entry].rows and _is_transposed(graph.nodes[edge.target]):
            gradients[entry] = msgspec.structs.replace(gradients[entry], rows=None)
    flowed = BackwardPass(
        gradients=tuple(gradients),
        edges=tuple(edge_gradients.edges),
        upstream=tuple(tuple(outputs) for outputs in edge_gradients.upstream),
        seeds=tuple(seeds),
        accumulations=tuple(
            Accumulation(edge_gradients.upstream[leaf.node][0]) for leaf in graph.leaves
        ),
        error=error,
    )
    # What arrived is not what the node received: only a hook of the program can do that.
    altered = sorted({node for node, _ in differences(graph, flowed)})
    return msgspec.structs.replace(flowed, altered=tuple(altered))


def _op_and_kind(live: LiveNode) -> tuple[str, Kind]:
    if isinstance(live, BackwardCFunction):
        return op_name(live), "opaque" if is_opaque(torch_name(live)) else "custom"
    return _built_in(torch_name(live))


@lru_cache(maxsize=4_096)
def _built_in(name: str) -> tuple[str, Kind]:
    return without_namespace(name), "opaque" if is_opaque(name) else "op"
