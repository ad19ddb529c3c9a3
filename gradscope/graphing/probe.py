"""One look at a live graph: walk it, send a gradient through it, and leave it as it was.

Also watches a backward call that the program makes itself.  Knows nothing of targets or of how a
root was chosen.
"""

from __future__ import annotations

import datetime
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from gradscope.autograd import saved
from gradscope.autograd.calls import BackwardCall, edge_of, own_grad
from gradscope.autograd.isolation import grads_preserved, own_pass, unseen
from gradscope.autograd.nodes import (
    is_leaf,
    is_nested,
    leaf_of,
    op_name,
    outputs_of,
    torch_name,
)
from gradscope.autograd.summary import SMALL
from gradscope.autograd.walk import Walked, make_release_safe, walk
from gradscope.errors import CaptureError, Fault, ReportError, described
from gradscope.escaping import message
from gradscope.garbage import collector_paused
from gradscope.graphing.assemble import Assembler, backward_pass
from gradscope.graphing.blame import explain_failure
from gradscope.graphing.edge_gradients import EdgeGradients
from gradscope.graphing.gradient_table import MAX_VALUES, NONE, GradientTable
from gradscope.model.invariants import check
from gradscope.model.report import Accumulation, BackwardPass, Graph, Leaf, Meta, Report
from gradscope.recording.names import Scopes
from gradscope.recording.recorder import Recorder
from gradscope.version import VERSION

EVERYTHING = 10_000_000
"""With ``--values``: elements a tensor, and in all, whose values are kept."""


@dataclass(frozen=True)
class Detail:
    """How much a report keeps: the values of all tensors, what each node saved for backward, and
    the sizes of each gradient's elements."""

    values: bool = False
    saved: bool = False
    histograms: bool = False

    @property
    def keep(self) -> int:
        """Values of tensors with at most this many elements are kept."""
        return EVERYTHING if self.values else SMALL


@dataclass
class BackwardOutcome:
    """A backward call that the program made itself: its result or the exception it raised."""

    result: Any
    failure: BaseException | None

    def conclude(self) -> Any:
        """End the call as it ended: return its result or raise its exception."""
        if self.failure is not None:
            raise self.failure
        return self.result


@dataclass
class ObservedBackward(BackwardOutcome):
    """The same with what flowed, and what there is to say of a failure."""

    flowed: BackwardPass
    notes: list[str]


def made(call: BackwardCall) -> BackwardOutcome:
    """Let the program make its call, and keep what comes of it."""
    try:
        return BackwardOutcome(call.run(), None)
    except Exception as error:  # the program's own; whoever asked decides what becomes of it
        return BackwardOutcome(None, error)


class Probe:
    """A walked graph, ready for one pass and a Report.

    Args:
        roots: tensors (or gradient edges) that backward would start from.
        recorder: what is known of how the graph was made.
        scopes: the variables in sight.
        detail: how much to keep.
    """

    @collector_paused()
    def __init__(
        self, roots: Sequence[Any], recorder: Recorder, scopes: Scopes, detail: Detail
    ) -> None:
        self._roots = roots
        self._recorder = recorder
        self._edges = [edge_of(root) for root in roots]
        self.walked: Walked = walk(node for node, _ in self._edges)
        make_release_safe(self.walked)
        self._assembler = Assembler(self.walked, recorder, scopes, detail.keep, detail.saved)
        self.graph: Graph = self._assembler.graph(roots)
        limit = EVERYTHING if detail.values else MAX_VALUES
        self._table = GradientTable(detail.keep, limit, detail.histograms)
        self._leaf_table = GradientTable(limit=0)
        self._leaf_sizes: list[int] = []

    @collector_paused()
    def report(
        self,
        passes: Sequence[BackwardPass] = (),
        notes: Sequence[str] = (),
        studied: Mapping[str, Any] | None = None,
    ) -> Report:
        """The finished report, its invariants checked; ``studied`` are further fields of it."""
        graph = msgspec.structs.replace(
            self.graph, origins=self._assembler.origins(), leaves=self._leaves()
        )
        every_note = (*notes, *self._limits())
        finished = Report(graph, meta(), tuple(passes), every_note, **(studied or {}))
        return checked(finished)

    @collector_paused()
    def own_pass(self, gradient: torch.Tensor) -> BackwardPass:
        """Send a gradient through the graph from its one root.

        Buffers are kept, ``.grad`` and the random state stay as they are, and nothing is
        accumulated.  Hooks that the program put on tensors do run, as in any backward.

        Raises:
            CaptureError: when backward fails, or would end the process; says why.
        """
        self.require_memory()
        self._measure_leaves()
        edge_gradients, seeds = self._seeded([gradient])
        try:
            with edge_gradients.hooked(), grads_preserved(), own_pass():
                self._send(edge_gradients, gradient)
        except Exception as error:
            raise self._explained(error) from error
        edge_gradients.end()
        return backward_pass(edge_gradients, self.graph, seeds)

    def watch(self, call: BackwardCall, number: int) -> ObservedBackward:
        """Let the program make its call, and see what flows."""
        # Not as a decorator, whose frame would stand between the program and torch.
        with collector_paused():
            return self._watch(call, number)

    def _watch(self, call: BackwardCall, number: int) -> ObservedBackward:
        with unseen():
            self._measure_leaves()
            edge_gradients, seeds = self._seeded(map(given, call.roots, call.gradients))
            # Measured and not kept: the call may add to this very tensor.
            before = [self._grad_of(leaf.node) for leaf in self.graph.leaves]
        with edge_gradients.hooked():
            ended = made(call)
        with unseen():
            return self._watched(call, number, edge_gradients, seeds, before, ended)

    def _watched(
        self,
        call: BackwardCall,
        number: int,
        edge_gradients: EdgeGradients,
        seeds: list[int],
        before: list[int | None],
        ended: BackwardOutcome,
    ) -> ObservedBackward:
        """What there is to say of the call, now that it has ended."""
        failure = ended.failure
        if failure is None:
            if not call.accumulates:
                self._note_results(edge_gradients, call, ended.result)
            edge_gradients.end()
        else:
            edge_gradients.fail()
        flowed = backward_pass(edge_gradients, self.graph, seeds)
        flowed = msgspec.structs.replace(
            flowed,
            number=number,
            origin=self._assembler.origin(self._recorder.places.site_of(call.frame)),
            accumulations=self._accumulations(flowed, before, call.accumulates),
            gradients=self._table.finish(),
            error="" if failure is None else f"{type(failure).__name__}: {message(failure)}",
        )
        notes = explain_failure(failure, self.walked, self._recorder) if failure else []
        return ObservedBackward(ended.result, failure, flowed, notes)

    # ------------------------------------------------------------------ inside

    def _measure_leaves(self) -> None:
        """The size of every leaf's values before the program can change them."""
        tensors = (leaf_of(self.walked.nodes[leaf.node]) for leaf in self.graph.leaves)
        self._leaf_sizes = [self._leaf_table.add_held(tensor) for tensor in tensors]

    def _leaves(self) -> tuple[Leaf, ...]:
        if not self._leaf_sizes:
            return self.graph.leaves
        table = self._leaf_table.finish()
        sizes = (table[index].norm for index in self._leaf_sizes)
        return tuple(
            msgspec.structs.replace(leaf, norm=norm)
            for leaf, norm in zip(self.graph.leaves, sizes, strict=True)
        )

    def _seeded(self, gradients: Iterable[torch.Tensor | None]) -> tuple[EdgeGradients, list[int]]:
        outputs = (len(node.outputs) for node in self.graph.nodes)
        edge_gradients = EdgeGradients(self.walked, self._table, outputs)
        seeds = [
            NONE
            if gradient is None
            else edge_gradients.seed(self.walked.index[node], output, gradient)
            for (node, output), gradient in zip(self._edges, gradients, strict=True)
        ]
        return edge_gradients, seeds

    def require_memory(self) -> None:
        """Make sure that a pass of our own finds what the nodes saved: it may come before the
        program has brought back what it has released.

        Raises:
            CaptureError: naming the first node that would not.
        """
        for node in self.walked.nodes:
            if saved.is_released(node):
                raise CaptureError(
                    f"no gradient can be sent through {op_name(node)}: the memory of what it saved "
                    "has been given back",
                    "look at the program's own backward call: leave out --root and --gradient",
                )

    def _send(self, edge_gradients: EdgeGradients, gradient: torch.Tensor) -> None:
        # Asking for all leaves as inputs leaves every ``.grad`` alone.
        leaves = [(n, live) for n, live in enumerate(self.walked.nodes) if is_leaf(live)]
        inputs: list[torch.Tensor] = [live.variable for _, live in leaves]  # type: ignore[attr-defined]
        # Reentrant checkpointing calls backward inside backward, which torch allows only where
        # gradients are accumulated.
        reentrant = any(
            torch_name(node) == "CheckpointFunctionBackward" for node in self.walked.nodes
        )
        if reentrant or not inputs:
            torch.autograd.backward(self._roots, [gradient], retain_graph=True)
            return
        found = own_grad(self._roots, inputs, [gradient])
        for (number, _), arrived in zip(leaves, found, strict=True):
            edge_gradients.arrived(number, 0, arrived)

    def _explained(self, error: Exception) -> CaptureError:
        notes = explain_failure(error, self.walked, self._recorder)
        raised = self._recorder.places.site_of_error(error)
        # A custom Function's backward is the program's own code, and can be pointed at.
        if not notes and raised is not None:
            origin = self._recorder.sources.origin(raised)
            notes = [f"raised by `{origin.expression}` at {origin.file}:{origin.line}"]
        return CaptureError(
            f"backward failed with {described(error)}",
            *(notes or ["the program's own backward would fail in the same way"]),
        )

    def _note_results(self, edge_gradients: EdgeGradients, call: BackwardCall, result: Any) -> None:
        for tensor, gradient in zip(call.inputs, result, strict=False):
            node, output = edge_of(tensor)
            position = self.walked.index.get(node)
            if position is not None:
                edge_gradients.arrived(position, output, gradient)

    def _grad_of(self, number: int) -> int | None:
        leaf = self.walked.nodes[number].variable  # type: ignore[attr-defined]
        return None if leaf is None or leaf.grad is None else self._table.add_held(leaf.grad)

    def _accumulations(
        self, flowed: BackwardPass, before: list[int | None], accumulates: bool
    ) -> tuple[Accumulation, ...]:
        if not accumulates:
            return flowed.accumulations
        return tuple(
            Accumulation(seen.new, old, self._grad_of(leaf.node))
            for seen, old, leaf in zip(flowed.accumulations, before, self.graph.leaves, strict=True)
        )

    def _limits(self) -> tuple[str, ...]:
        opaque = sorted({node.op for node in self.graph.nodes if node.kind == "opaque"})
        limits = [f"{op} hides the operations inside it; only its edges are shown" for op in opaque]
        if self._table.fault is not None:
            limits.append(f"not every gradient could be read: {self._table.fault.what}")
        if self._recorder.fault is not None:
            limits.append(f"not every call could be followed: {self._recorder.fault.what}")
        return tuple(limits)


def given(root: Any, seed: torch.Tensor | None) -> torch.Tensor | None:
    """The gradient that a pass starts with: as given, or the 1 that torch fills in."""
    if seed is not None:
        return seed
    node, output = edge_of(root)
    described: Any = outputs_of(node)[output] if outputs_of(node) else root
    if is_nested(described) or math.prod(described.shape) != 1:
        return None
    return torch.ones(tuple(described.shape), dtype=described.dtype, device=described.device)


def meta(target: str = "") -> Meta:
    """Where a report made now comes from."""
    return Meta(
        gradscope=VERSION,
        torch=str(torch.__version__),
        python=platform.python_version(),
        target=target,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def checked(report: Report) -> Report:
    """The very report, if it keeps its invariants.

    Raises:
        Fault: it does not.
    """
    try:
        check(report)
    except ReportError as error:
        raise Fault.of(error) from None
    return report
