"""One backward call of the program, watched; its graph is described only if somebody asks.

Walks the graph before the call, measures every gradient on the way, and notes what a node had saved
when it made a gradient that is not finite.  Knows nothing of what other parts have seen.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import Any

import msgspec
import torch

from gradscope.capture.assemble import Assembler, backward_pass
from gradscope.capture.calls import BackwardCall, edge_of
from gradscope.capture.exam.saved_values import summaries
from gradscope.capture.flow import Flow, Gradients, is_leaf, outputs_of
from gradscope.capture.meter import NONE, NOT_REACHED, Meter
from gradscope.capture.names import Scopes
from gradscope.capture.recorder import Recorder
from gradscope.capture.walk import Walked, make_release_safe, walk
from gradscope.observations import Saved
from gradscope.report import Accumulation, BackwardPass, GradientInfo, Graph

MAX_BIRTHS = 8
"""Nodes whose saved tensors are described, because they made a gradient that is not finite."""


_WIDE = {torch.float32: "float32", torch.float64: "float64"}


class DoctorsFlow(Flow):
    """Also looks at what a node had saved when finite gradients came in and others went out."""

    def __init__(self, walked: Walked, meter: DoctorsMeter) -> None:
        super().__init__(walked, meter)
        self._bad = meter.bad
        self.saved: list[Saved] = []
        self.replaced: set[int] = set()
        self.has_hooks = False
        self._births = 0

    def _received(self, number: int, output: int, gradient: torch.Tensor | None) -> int:
        if not self.has_hooks:
            return super()._received(number, output, gradient)
        arriving = [edge for to, edge in self._arriving[number] if to == output]
        if gradient is not None and len(arriving) == 1:
            sent = self._sent[arriving[0]]
            if sent is not None and sent.tensor() is not gradient:
                self.replaced.add(number)
        return super()._received(number, output, gradient)

    def _after(self, number: int, sent: Gradients, received: Gradients) -> None:
        super()._after(number, sent, received)
        if self._births < MAX_BIRTHS and self._is_birth(number):
            self._births += 1
            self.saved.extend(summaries(number, self._walked.nodes[number]))

    def _is_birth(self, number: int) -> bool:
        bad = self._bad
        if not bad or all(self.edges[edge] not in bad for _, edge in self._leaving[number]):
            return False
        return all(entry not in bad for entry in self.upstream[number])


class DoctorsMeter(Meter):
    """Knows which entries of its table are not finite as soon as they are measured."""

    def __init__(self) -> None:
        super().__init__(keep=0, limit=0)
        self.bad: set[int] = set()

    def add(self, gradient: torch.Tensor | None) -> int:
        """Measure one gradient and return its index in the table."""
        if gradient is None:
            return NONE
        entry = self._add_ordinary(gradient)
        if entry is None:
            entry = super().add(gradient)
            if self._table[entry].state == "non-finite":
                self.bad.add(entry)
        return entry

    def _add_ordinary(self, gradient: torch.Tensor) -> int | None:
        """The way of nearly all gradients: dense, on the CPU, finite and not zero."""
        if type(gradient) is not torch.Tensor or gradient.dtype not in _WIDE:
            return None
        if gradient.device.type != "cpu" or gradient.layout is not torch.strided:
            return None
        if torch._C._len_torch_dispatch_stack() or gradient.is_nested:
            return None
        with torch._C.DisableTorchFunction():
            still = gradient.detach() if gradient.requires_grad else gradient
            norm = torch.linalg.vector_norm(still).item()
        if not 0 < norm < math.inf:
            return None
        with self._lock:
            self._table.append(GradientInfo("finite", norm=norm, dtype=_WIDE[gradient.dtype]))
            return len(self._table) - 1


class Watch:
    """A backward call that is about to be made.

    Args:
        call: the call.
        recorder: what is known of how the graph was made.
        number: counts the program's calls from 1.
        has_hooks: the program has hung hooks on tensors, so that gradients may be replaced.
    """

    def __init__(
        self, call: BackwardCall, recorder: Recorder, number: int, has_hooks: bool
    ) -> None:
        self.call = call
        self.number = number
        self.failure: BaseException | None = None
        self.result: Any = None
        self._recorder = recorder
        self._edges = [edge_of(root) for root in call.roots]
        self.walked = walk(node for node, _ in self._edges)
        make_release_safe(self.walked)
        self.sequences = {
            node._sequence_nr(): position
            for position, node in enumerate(self.walked.nodes)
            if not is_leaf(node)
        }
        self._leaf_positions = [n for n, node in enumerate(self.walked.nodes) if is_leaf(node)]
        self._meter = DoctorsMeter()
        self.flow = DoctorsFlow(self.walked, self._meter)
        self.flow.has_hooks = has_hooks
        self._before: list[int | None] = []
        self._after: list[int | None] = []
        self._seeds: list[int] = []

    @property
    def leaves(self) -> list[torch.Tensor]:
        """The leaves of the graph that still live."""
        found = (self.walked.nodes[position].variable for position in self._leaf_positions)  # type: ignore[attr-defined]
        return [leaf for leaf in found if leaf is not None]

    def prepare(self) -> None:
        """Measure what the call starts from."""
        for root, given, (node, output) in zip(
            self.call.roots, self.call.gradients, self._edges, strict=True
        ):
            seed = given if given is not None else _implicit(root, node, output)
            position = self.walked.index[node]
            self._seeds.append(NONE if seed is None else self.flow.seed(position, output, seed))
        self._before = self._grads()

    def run(self) -> None:
        """Make the call."""
        with self.flow.hooked():
            try:
                self.result = self._recorder.let_run(self.call)
            except Exception as error:  # the program's own: it is raised again when we have looked
                self.failure = error
        if self.failure is None:
            if not self.call.accumulates:
                self._note_results()
            self.flow.end()

    def conclude(self) -> Any:
        """End the call as it ended: return its result or raise its exception."""
        if self.failure is not None:
            raise self.failure
        return self.result

    # ------------------------------------------------------------------ what came of it

    def measured(self) -> None:
        """Measure what the call left, and wait for what waits on other devices."""
        self._after = self._grads() if self.call.accumulates else [None] * len(self._before)
        for entry, info in enumerate(self._meter.finish()):
            if info.state == "non-finite":
                self._meter.bad.add(entry)

    @property
    def is_finite(self) -> bool:
        """Whether every gradient on the way was finite."""
        return not self._meter.bad

    def norm(self) -> float | None:
        """The norm of the gradients of all leaves together; None where no leaf got any."""
        known = [norm for _, norm in self.leaf_norms()]
        return math.hypot(*known) if known else None

    def leaf_norms(self) -> Iterator[tuple[torch.Tensor, float]]:
        """The 2-norm of what arrived at each leaf, where something did."""
        table = self._meter.finish()
        for position in self._leaf_positions:
            leaf = self.walked.nodes[position].variable  # type: ignore[attr-defined]
            norm = table[self.flow.upstream[position][0]].norm
            if leaf is not None and norm is not None:
                yield leaf, float(norm)

    def reached(self) -> list[torch.Tensor]:
        """The leaves that the call brought a gradient."""
        found = []
        for position in self._leaf_positions:
            leaf = self.walked.nodes[position].variable  # type: ignore[attr-defined]
            if self.flow.upstream[position][0] not in (NONE, NOT_REACHED) and leaf is not None:
                found.append(leaf)
        return found

    def outside(self) -> list[torch.Tensor]:
        """Tensors that the call wants the gradient of, and that are not in its graph."""
        return [
            tensor
            for tensor in self.call.inputs
            if isinstance(tensor, torch.Tensor) and edge_of(tensor)[0] not in self.walked.index
        ]

    def leaf_numbers(self) -> dict[int, tuple[weakref.ref[torch.Tensor], int]]:
        """The leaves by their number in the graph's table."""
        found = {}
        for number, position in enumerate(self._leaf_positions):
            leaf = self.walked.nodes[position].variable  # type: ignore[attr-defined]
            if leaf is not None:
                found[id(leaf)] = (weakref.ref(leaf), number)
        return found

    def described(self, scopes: Scopes) -> tuple[Assembler, Graph]:
        """The graph as plain data, and what still can give names and places."""
        assembler = Assembler(self.walked, self._recorder, scopes)
        return assembler, assembler.graph(self.call.roots)

    def flowed(self, graph: Graph, origin: int | None) -> BackwardPass:
        """The gradients as plain data."""
        passed = backward_pass(self.flow, graph, self._seeds)
        accumulations = tuple(
            Accumulation(seen.new, before, after)
            for seen, before, after in zip(
                passed.accumulations, self._before, self._after, strict=True
            )
        )
        error = self.failure
        return msgspec.structs.replace(
            passed,
            number=self.number,
            origin=origin,
            gradients=self._meter.finish(),
            accumulations=accumulations if self.call.accumulates else passed.accumulations,
            error="" if error is None else f"{type(error).__name__}: {error}",
        )

    def _grads(self) -> list[int | None]:
        leaves = [self.walked.nodes[position].variable for position in self._leaf_positions]  # type: ignore[attr-defined]
        if not self.call.accumulates:
            return [None] * len(leaves)
        return [
            None if leaf is None or leaf.grad is None else self._meter.add(leaf.grad)
            for leaf in leaves
        ]

    def _note_results(self) -> None:
        for tensor, gradient in zip(self.call.inputs, self.result, strict=False):
            node, output = edge_of(tensor)
            position = self.walked.index.get(node)
            if position is not None and not self.call.batched:
                self.flow.arrived(position, output, gradient)


def _implicit(root: Any, node: Any, output: int) -> torch.Tensor | None:
    """The 1 that torch fills in for a scalar root."""
    described = outputs_of(node)[output] if outputs_of(node) else root
    if math.prod(described.shape) != 1:
        return None
    return torch.ones(tuple(described.shape), dtype=described.dtype, device=described.device)
