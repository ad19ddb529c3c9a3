"""One look at a live graph: walk it, send a gradient through it, and leave it as it was.

Also watches a backward call that the program makes itself.  Knows nothing of targets or of how a
root was chosen.
"""

from __future__ import annotations

import datetime
import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import torch

from gradscope import doing
from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.isolation import hidden
from gradscope.autograd.nodes import Walked, leaf_of, make_release_safe, walk
from gradscope.autograd.numbers import SMALL
from gradscope.errors import CaptureError, Fault, ReportError, described
from gradscope.graphing.assemble import Assembler
from gradscope.graphing.edge_gradients import EdgeGradients
from gradscope.graphing.gradient_table import MAX_VALUES, GradientTable
from gradscope.graphing.watched_call import MeasuredCall, own_call
from gradscope.handlers import collector_paused, let_pass, without_collector
from gradscope.model.invariants import check
from gradscope.model.report import (
    COMPILED,
    BackwardPass,
    Graph,
    Leaf,
    Meta,
    Report,
    way_inside,
)
from gradscope.model.request import Request
from gradscope.recording.compiler import Eager
from gradscope.recording.names import Scopes
from gradscope.recording.recorder import Recorder
from gradscope.words import VERSION, count, either, speaks_python

EVERYTHING = 10_000_000
"""With ``--values``: elements a tensor, and in all, whose values are kept."""

DEFAULT = Request()


class Probe:
    """A walked graph, ready for one pass and a Report.

    Args:
        roots: tensors (or gradient edges) that backward would start from.
        recorder: what is known of how the graph was made.
        scopes: the variables in sight.
        asked: how much of it is to be kept.
    """

    @without_collector
    def __init__(
        self,
        roots: Sequence[Any],
        recorder: Recorder,
        scopes: Scopes,
        asked: Request = DEFAULT,
    ) -> None:
        keep, limit = (EVERYTHING,) * 2 if asked.values else (SMALL, MAX_VALUES)
        self._roots = roots
        self._recorder = recorder
        self.walked: Walked = walk(edge_of(root)[0] for root in roots)
        # Before anything can fail: python knows all of the nodes now, and the graph may be dropped.
        make_release_safe(self.walked)
        doing.begin(f"reading the graph, {self._size}")
        self._assembler = Assembler(self.walked, recorder, scopes, keep, asked.saved)
        self.graph: Graph = self._assembler.graph(roots)
        self._table = GradientTable(keep, limit, asked.histograms)
        # A table of its own: the one of the pass goes into the report, and these are no gradients.
        self._leaf_table = GradientTable(limit=0)
        self._leaf_sizes: list[int] = []

    @without_collector
    def report(
        self,
        passes: Sequence[BackwardPass] = (),
        notes: Sequence[str] = (),
        studied: Mapping[str, Any] | None = None,
    ) -> Report:
        """The finished report, its invariants checked; ``studied`` are further fields of it."""
        doing.begin(f"making the report of {self._size}")
        absent, origins = tuple(self._never_called()), self._assembler.origins()
        graph = msgspec.structs.replace(
            self.graph, origins=origins, leaves=self._leaves(), absent=absent
        )
        every_note = (*notes, *self._limits())
        told = tuple(map(self._assembler.with_hooks, passes))
        finished = Report(graph, meta(), told, every_note, **(studied or {}))
        return checked(finished)

    @without_collector
    def own_pass(self, gradient: torch.Tensor) -> BackwardPass:
        """Send a gradient through the graph from its one root.

        Buffers are kept, ``.grad`` and the random state stay as they are, and nothing is
        accumulated.  Hooks that the program put on tensors do run, as in any backward.

        Raises:
            CaptureError: when backward fails, or would end the process; says why.
        """
        doing.begin(f"reading the gradients of {self._size}")
        self.require_memory()
        self._measure_leaves()
        call = own_call(self._roots, [gradient], self.walked)
        measured = MeasuredCall(call, self._recorder, 0, EdgeGradients(self.walked, self._table))
        measured.note_seeds()
        measured.run()
        if measured.failure is not None:
            let_pass(measured.failure)
            raise self._explained(measured.failure) from measured.failure
        self._assembler.hooked_edges |= measured.flow.hooked_edges
        return measured.passed(self.graph, None)

    def watch(self, call: BackwardCall, number: int) -> MeasuredCall:
        doing.begin(f"reading the gradients of {self._size}")
        # Not as a decorator, whose frame would stand between the program and torch.
        with collector_paused():
            with hidden():
                self._measure_leaves()
                watched = MeasuredCall(
                    call, self._recorder, number, EdgeGradients(self.walked, self._table)
                )
                watched.prepare()
            # Not inside of `hidden`: the call is the program's, and its hooks run as they do
            # without us.
            watched.run()
        return watched

    @without_collector
    def told(self, watched: MeasuredCall) -> tuple[BackwardPass, list[str]]:
        """What flowed in a call that has ended, as plain data, and what to say of a failure."""
        watched.note_grads()
        self._assembler.hooked_edges |= watched.flow.hooked_edges
        origin = self._assembler.origin(self._recorder.places.site_of_call(watched.call.frame))
        passed = watched.passed(self.graph, origin)
        failure = watched.failure
        if failure is None:
            return passed, []
        return passed, self._blamed(failure, frees=not watched.call.retain_graph)

    @property
    def held(self) -> Mapping[tuple[int, int], torch.Tensor]:
        """The tensors that variables hold, by the node that made them and its output."""
        return self._assembler.held

    # ------------------------------------------------------------------ inside

    @property
    def _size(self) -> str:
        return count(len(self.walked.nodes), "node")

    def _measure_leaves(self) -> None:
        """The size of every leaf's values before the program can change them."""
        tensors = (leaf_of(self.walked.nodes[leaf.node]) for leaf in self.graph.leaves)
        self._leaf_sizes = [self._leaf_table.add(tensor) for tensor in tensors]

    def _leaves(self) -> tuple[Leaf, ...]:
        if not self._leaf_sizes:
            return self.graph.leaves
        table = self._leaf_table.finish()
        sizes = (table[index].norm for index in self._leaf_sizes)
        return tuple(
            msgspec.structs.replace(leaf, norm=norm)
            for leaf, norm in zip(self.graph.leaves, sizes, strict=True)
        )

    def require_memory(self) -> None:
        """Make sure that a pass of our own finds what the nodes saved: it may come before the
        program has brought back what it has released.

        Raises:
            CaptureError: naming the first node that would not.
        """
        from gradscope.autograd.saved import ReleasedMemory

        released = ReleasedMemory()
        for node in self.walked.nodes:
            reason = released.refusal(node)
            if reason:
                own = either("leave out --root and --gradient", "record(doctor=True) does")
                raise CaptureError(
                    f"no gradient can be sent through the graph: {reason}",
                    f"look at the program's own backward call: {own}",
                )

    def _explained(self, error: Exception) -> CaptureError:
        notes = self._blamed(error)
        raised = self._recorder.places.site_of_error(error)
        # A custom Function's backward is the program's own code, and can be pointed at.
        if not notes and raised is not None:
            origin = self._recorder.sources.origin(raised)
            by = f"by `{origin.expression}` " if origin.expression else ""
            notes = [f"raised {by}at {origin}"]
        return CaptureError(
            f"backward failed with {described(error)}",
            *(notes or ["the program's own backward would fail in the same way"]),
        )

    def _blamed(self, failure: BaseException, frees: bool = False) -> list[str]:
        from gradscope.graphing.blame import explain_failure

        return explain_failure(failure, self.walked, self._recorder, frees)

    def _limits(self) -> tuple[str, ...]:
        limits = list(not_shown(self.graph))
        operations = [node for node in self.graph.nodes if node.kind != "leaf"]
        unknown = sum(node.origin is None for node in operations)
        if unknown and speaks_python():
            limits.append(
                f"the lines of {unknown:,} of {count(len(operations), 'operation')} are not known: "
                "see gradscope.record()"
            )
        if self.walked.ambiguous:
            many = f"{self.walked.ambiguous:,} operations"
            limits.append(
                f"several threads made this graph: which line made which of {many} is not known"
            )
        if self.graph.scale is not None:
            limits.append(
                f"the GradScaler multiplied the loss by {self.graph.scale:.12g}, and so every "
                "gradient, until it divides them again"
            )
        if self._table.fault is not None:
            limits.append(f"not every gradient could be read: {self._table.fault.what}")
        if self._recorder.fault is not None:
            limits.append(f"not every call could be followed: {self._recorder.fault.what}")
        return tuple(limits)

    def _never_called(self) -> list[str]:
        """Modules of a list that were never called, though others of it were, and no parameter of
        which was used in another way."""
        names = [name for leaf in self.graph.leaves for name in leaf.names]
        found = self._assembler.module_names.never_called(self._recorder.modules)
        return [path for path in found if not any(name.startswith(f"{path}.") for name in names)]


def not_shown(graph: Graph) -> Iterator[str]:
    """What of the program could not be seen node by node, and how it can be."""
    for op in sorted({node.op for node in graph.nodes if node.kind == "opaque"}):
        way = f"{way_inside(op)} for their lines"
        if Eager.started and op == COMPILED:
            way = "the program calls torch.compiler.set_stance itself, which takes precedence"
        yield f"{op} hides the operations inside it; only its edges are shown: {way}"


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
