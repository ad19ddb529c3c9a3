"""Reports built by hand for the tests of everything right of the wall.

:class:`Program` is a small machine: leaves and elementwise operations with known derivatives.  It
numbers the nodes as backward walks them and computes every gradient itself, so that no torch is
needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from gradscope.model.plain import Number, TensorInfo
from gradscope.model.report import (
    Accumulation,
    BackwardPass,
    Edge,
    GradientInfo,
    Graph,
    Kind,
    Leaf,
    Meta,
    ModuleCall,
    Node,
    Origin,
    Report,
    Root,
    State,
)

Vector = tuple[float, ...]
MOST_VALUES = 8


@dataclass(frozen=True)
class Value:
    """An output of a step of the program."""

    step: int
    output: int
    data: Vector
    shape: tuple[int, ...]


@dataclass
class Step:
    """A leaf or an operation, in the order of the program."""

    op: str
    kind: Kind
    outputs: list[Value]
    inputs: list[tuple[Value, Vector]] = field(default_factory=list)
    names: tuple[str, ...] = ()
    origin: int | None = None
    call: int | None = None
    variable: str = ""
    saved: tuple[tuple[str, TensorInfo], ...] = ()


class Program:
    """Builds a Report step by step.

    A tensor is its shape and either all its numbers or one number that fills it; numbers of filled
    tensors larger than :data:`MOST_VALUES` are not stored, as in a real report.
    """

    def __init__(self, file: str = "demo.py") -> None:
        self.file = file
        self.line = 1
        self.function = ""
        self.steps: list[Step] = []
        self.origins: dict[Origin, int] = {}
        self.calls: list[ModuleCall] = []
        self.inside: int | None = None

    def enter(self, path: str, type: str) -> None:
        """Call a module; what follows is made inside."""
        self.calls.append(ModuleCall(path, type, self.inside))
        self.inside = len(self.calls) - 1

    def exit(self) -> None:
        """Return from the module."""
        assert self.inside is not None
        self.inside = self.calls[self.inside].parent

    def leaf(self, *names: str, data: Sequence[float] = (1.0,), shape: Sequence[int] = ()) -> Value:
        """A leaf tensor with these names."""
        value = Value(len(self.steps), 0, tuple(data), tuple(shape))
        self.steps.append(Step("AccumulateGrad", "leaf", [value], names=names))
        self.steps[-1].origin = self._origin("", "")
        return value

    def op(
        self,
        op: str,
        inputs: Sequence[tuple[Value, float | Sequence[float]]],
        data: Sequence[float],
        expression: str = "",
        variable: str = "",
        kind: Kind = "op",
    ) -> Value:
        """An operation: its inputs, each with the derivative of the result by it."""
        shape = inputs[0][0].shape if inputs else ()
        value = Value(len(self.steps), 0, tuple(data), shape)
        step = Step(op, kind, [value], call=self.inside, variable=variable)
        step.origin = self._origin(expression, variable)
        for source, factor in inputs:
            factors = (factor,) if isinstance(factor, int | float) else tuple(factor)
            step.inputs.append((source, factors))
        self.steps.append(step)
        return value

    def another_output(self, value: Value) -> Value:
        """One more output of the same operation, as of ``unbind``; same data, same derivatives."""
        outputs = self.steps[value.step].outputs
        outputs.append(Value(value.step, len(outputs), value.data, value.shape))
        return outputs[-1]

    def _origin(self, expression: str, variable: str) -> int:
        origin = Origin(self.file, self.line, expression, variable, self.function)
        return self.origins.setdefault(origin, len(self.origins))

    def report(
        self,
        *roots: tuple[Value, Sequence[float]],
        labels: Sequence[str] = (),
        backward: bool = True,
        notes: Sequence[str] = (),
    ) -> Report:
        """The report of the program, with a backward pass from these roots and gradients."""
        return _Builder(self, roots, labels).report(backward, tuple(notes))


def in_turn(
    *ops: tuple[str, float | Sequence[float], str],
    line: int = 0,
    shape: Sequence[int] = (),
    received: float = 1.0,
) -> Report:
    """Operations after one another, each with its derivative by the one before, the first by
    ``w``; on lines of their own from ``line`` on, or all on the first."""
    program = Program()
    y = program.leaf("w", shape=shape)
    for number, (op, factor, text) in enumerate(ops):
        program.line = line + number if line else 1
        y = program.op(op, [(y, factor)], (1.0,), text)
    return program.report((y, (received,)))


class _Builder:
    """Numbers the steps from the last to the first and runs backward over them."""

    def __init__(
        self,
        program: Program,
        roots: Sequence[tuple[Value, Sequence[float]]],
        labels: Sequence[str],
    ) -> None:
        self.program = program
        self.roots = roots
        self.labels = [*labels, *[""] * (len(roots) - len(labels))]
        self.last = len(program.steps) - 1
        self.gradients: dict[GradientInfo, int] = {}

    def number(self, step: int) -> int:
        return self.last - step

    def report(self, backward: bool, notes: tuple[str, ...]) -> Report:
        graph = self.graph()
        passes = (self.backward(graph),) if backward else ()
        meta = Meta(gradscope="0", torch="2.13", target=self.program.file)
        return Report(graph=graph, meta=meta, passes=passes, notes=notes)

    def graph(self) -> Graph:
        steps = list(enumerate(self.program.steps))[::-1]
        leaves = [(i, step) for i, step in steps if step.kind == "leaf"][::-1]
        return Graph(
            nodes=tuple(self.node(index, step) for index, step in steps),
            edges=tuple(
                Edge(self.number(index), slot, self.number(value.step), value.output)
                for index, step in steps
                for slot, (value, _) in enumerate(step.inputs)
            ),
            leaves=tuple(
                Leaf(self.number(index), step.names, _tensor(step.outputs[0]), step.origin)
                for index, step in leaves
            ),
            roots=tuple(
                Root(self.number(value.step), value.output, label)
                for (value, _), label in zip(self.roots, self.labels, strict=True)
            ),
            origins=tuple(self.program.origins),
            calls=tuple(self.program.calls),
        )

    def node(self, index: int, step: Step) -> Node:
        return Node(
            id=self.number(index),
            op=step.op,
            kind=step.kind,
            outputs=tuple(map(_tensor, step.outputs)),
            origin=step.origin,
            call=step.call,
            variable=step.variable,
            saved=step.saved,
        )

    def backward(self, graph: Graph) -> BackwardPass:
        arrived: dict[tuple[int, int], Vector] = {}
        seeds, edges = [], []
        for value, gradient in self.roots:
            seeds.append(self.keep(tuple(gradient), value.shape))
            _add(arrived, (value.step, value.output), tuple(gradient))
        for index in range(self.last, -1, -1):
            step = self.program.steps[index]
            parts = [arrived[index, k] for k in range(len(step.outputs)) if (index, k) in arrived]
            for value, factors in step.inputs:
                flow = _times(_sum(parts), factors) if parts else None
                edges.append(self.keep(flow, value.shape))
                if flow is not None:
                    _add(arrived, (value.step, value.output), flow)
        steps = self.program.steps
        upstream = {
            self.number(index): tuple(
                self.keep(arrived.get((index, k)), value.shape)
                for k, value in enumerate(step.outputs)
            )
            for index, step in enumerate(steps)
        }
        rows = tuple(upstream[node.id] for node in graph.nodes)
        return BackwardPass(
            gradients=tuple(self.gradients),
            edges=tuple(edges),
            upstream=rows,
            seeds=tuple(seeds),
            accumulations=tuple(Accumulation(rows[leaf.node][0]) for leaf in graph.leaves),
        )

    def keep(self, data: Vector | None, shape: tuple[int, ...]) -> int:
        info = GradientInfo("not reached") if data is None else gradient(data, shape)
        return self.gradients.setdefault(info, len(self.gradients))


def gradient(data: Vector, shape: tuple[int, ...]) -> GradientInfo:
    """The summary of a gradient with these numbers."""
    size = math.prod(shape)
    each = size if len(data) == 1 else 1  # how many elements a number stands for
    nan = each * sum(map(math.isnan, data))
    inf = each * sum(map(math.isinf, data))
    norm = math.nan if nan else math.hypot(*data) * math.sqrt(each)
    state: State = "non-finite" if nan + inf else "finite" if each and any(data) else "zero"
    values = tuple(map(number, data * each)) if size <= MOST_VALUES else None
    return GradientInfo(state, number(norm), nan=nan, inf=inf, values=values)


def number(value: float) -> Number:
    """A number as reports store it."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _tensor(value: Value) -> TensorInfo:
    size = math.prod(value.shape)
    full = value.data * size if len(value.data) == 1 else value.data
    return TensorInfo(
        value.shape, "float32", values=tuple(map(number, full)) if size <= MOST_VALUES else None
    )


def _add(table: dict[tuple[int, int], Vector], key: tuple[int, int], more: Vector) -> None:
    table[key] = _sum([table[key], more]) if key in table else more


def _sum(parts: Sequence[Vector]) -> Vector:
    if len({len(part) for part in parts}) > 1:
        size = max(map(len, parts))
        parts = [part * size if len(part) == 1 else part for part in parts]
    return tuple(map(sum, zip(*parts, strict=True)))


def _times(data: Vector, factors: Vector) -> Vector:
    if len(factors) == 1:
        return tuple(value * factors[0] for value in data)
    if len(data) == 1:
        data = data * len(factors)
    return tuple(value * factor for value, factor in zip(data, factors, strict=True))
