"""One look at a live graph: walk it, send a gradient through it, and leave it as it was.

Also watches a backward call that the program makes itself.  Knows nothing of targets or of how a
root was chosen.
"""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from gradscope.capture.assemble import Assembler, backward_pass
from gradscope.capture.blame import explain_failure
from gradscope.capture.calls import BackwardCall, edge_of
from gradscope.capture.flow import Flow, is_leaf
from gradscope.capture.meter import MAX_VALUES, Meter
from gradscope.capture.names import Scopes
from gradscope.capture.recorder import Recorder
from gradscope.capture.summary import SMALL
from gradscope.capture.walk import Walked, make_release_safe, walk
from gradscope.invariants import check
from gradscope.report import Accumulation, BackwardPass, Graph, Meta, Report
from gradscope.version import VERSION

EVERYTHING = 10_000_000
"""With ``--values``: elements a tensor, and in all, whose values are kept."""


@dataclass(frozen=True)
class Detail:
    """How much a report keeps: the values of all tensors, and what each node saved for backward."""

    values: bool = False
    saved: bool = False

    @property
    def keep(self) -> int:
        """Values of tensors with at most this many elements are kept."""
        return EVERYTHING if self.values else SMALL


class Probe:
    """A walked graph, ready for one pass and a Report.

    Args:
        roots: tensors (or gradient edges) that backward would start from.
        recorder: what is known of how the graph was made.
        scopes: the variables in sight.
        detail: how much to keep.
    """

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
        self._meter = Meter(detail.keep, EVERYTHING if detail.values else MAX_VALUES)

    def report(self, passes: Sequence[BackwardPass] = (), notes: Sequence[str] = ()) -> Report:
        """The finished report, its invariants checked."""
        graph = msgspec.structs.replace(self.graph, origins=self._assembler.origins())
        finished = Report(graph, meta(), tuple(passes), tuple(notes) + self._limits())
        check(finished)
        return finished

    def own_pass(self, gradient: torch.Tensor) -> BackwardPass:
        """Send a gradient through the graph from its one root.

        Buffers are kept, ``.grad`` and the random state stay as they are, and nothing is
        accumulated. Hooks that the program put on tensors do run, as in any backward.
        """
        flow, seeds = self._seeded([gradient])
        leaves = [(n, live) for n, live in enumerate(self.walked.nodes) if is_leaf(live)]
        inputs = [live.variable for _, live in leaves]  # type: ignore[attr-defined]
        with flow.hooked():
            if self._needs_accumulation() or not inputs:
                self._backward_and_restore(gradient, inputs)
            else:
                found = torch.autograd.grad(
                    self._roots, inputs, [gradient], retain_graph=True, allow_unused=True
                )
                for (number, _), arrived in zip(leaves, found, strict=True):
                    flow.arrived(number, 0, arrived)
        return backward_pass(flow, self.walked, self.graph, seeds)

    def watch(self, call: BackwardCall, number: int) -> tuple[Any, BackwardPass, list[str]]:
        """Let the program make its call, and see what flows.

        Returns:
            the call's result or the exception it raised, the pass, and what to say of a failure.
        """
        flow, seeds = self._seeded(
            [_given(root, seed) for root, seed in zip(call.roots, call.gradients, strict=True)]
        )
        before = [self._grad_of(leaf.node) for leaf in self.graph.leaves]
        failure: BaseException | None = None
        result: Any = None
        with flow.hooked():
            try:
                result = call.run()
            except Exception as error:  # the program's own; it is raised again by the caller
                failure = error
        if failure is None and not call.accumulates:
            self._note_results(flow, call, result)
        flowed = backward_pass(flow, self.walked, self.graph, seeds)
        site = self._recorder.site_of(call.frame)
        flowed = msgspec.structs.replace(
            flowed,
            number=number,
            origin=self._assembler.origin(site),
            accumulations=self._accumulations(flowed, before, call.accumulates),
            gradients=self._meter.finish(),
            error="" if failure is None else f"{type(failure).__name__}: {failure}",
        )
        notes = explain_failure(failure, self.walked, self._recorder) if failure else []
        return failure if failure is not None else result, flowed, notes

    # ------------------------------------------------------------------ inside

    def _seeded(self, gradients: Sequence[torch.Tensor | None]) -> tuple[Flow, list[int]]:
        flow = Flow(self.walked, self._meter)
        seeds = [
            1 if gradient is None else flow.seed(self.walked.index[node], output, gradient)
            for (node, output), gradient in zip(self._edges, gradients, strict=True)
        ]
        return flow, seeds

    def _needs_accumulation(self) -> bool:
        # Reentrant checkpointing calls backward inside backward, which torch allows only where
        # gradients are accumulated.
        return any(node.name() == "CheckpointFunctionBackward" for node in self.walked.nodes)

    def _backward_and_restore(self, gradient: torch.Tensor, inputs: list[torch.Tensor]) -> None:
        with _grads_preserved([*inputs, *self._assembler.known_leaves()]):
            torch.autograd.backward(self._roots, [gradient], retain_graph=True)

    def _note_results(self, flow: Flow, call: BackwardCall, result: Any) -> None:
        for tensor, gradient in zip(call.inputs, result, strict=False):
            node, output = edge_of(tensor)
            position = self.walked.index.get(node)
            if position is not None and not call.batched:
                flow.arrived(position, output, gradient)

    def _grad_of(self, number: int) -> int | None:
        leaf = self.walked.nodes[number].variable  # type: ignore[attr-defined]
        return None if leaf is None or leaf.grad is None else self._meter.add(leaf.grad)

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
        return tuple(
            f"{op} hides the operations inside it; only its edges are shown" for op in opaque
        )


@contextmanager
def _grads_preserved(leaves: Sequence[torch.Tensor]) -> Iterator[None]:
    kept = [(leaf, leaf.grad) for leaf in leaves]
    try:
        for leaf, _ in kept:
            leaf.grad = None
        yield
    finally:
        for leaf, grad in reversed(kept):
            leaf.grad = grad


def _given(root: Any, seed: torch.Tensor | None) -> torch.Tensor | None:
    if seed is not None or not isinstance(root, torch.Tensor):
        return seed
    return torch.ones_like(root).detach() if root.numel() == 1 else None


def meta(target: str = "") -> Meta:
    """Where a report made now comes from."""
    return Meta(
        gradscope=VERSION,
        torch=str(torch.__version__),
        python=platform.python_version(),
        target=target,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


Look = Callable[[Probe], Report]
