"""What is timed: parts of a training step, plain, under gradscope, and under other tools.

A subject does its work on a program and runs the clock over the part that counts.  Its base is the
subject that it is compared with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from benchmarks.workloads import Program
from gradscope.autograd.nodes import make_release_safe, walk
from gradscope.graphing.edge_gradients import EdgeGradients
from gradscope.graphing.gradient_table import GradientTable
from gradscope.graphing.probe import Probe
from gradscope.handlers import collector_paused
from gradscope.model.report import Report
from gradscope.model.request import Request
from gradscope.recording.names import Scopes
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Sources
from gradscope.running.watcher import Watcher


class Clock:
    """CPU time of this process over the blocks that it was running in."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count this block."""
        begun = time.process_time()
        yield
        self.seconds += time.process_time() - begun


@dataclass(frozen=True)
class Subject:
    """Something to time, and the name of what it is compared with."""

    run: Callable[[Program, Clock], None]
    base: str


# ---------------------------------------------------------------------- plain


def step(program: Program, clock: Clock) -> None:
    """Forward and backward."""
    with clock.running():
        backward_of(program.forward())


def forward(program: Program, clock: Clock) -> None:
    """Forward."""
    with clock.running():
        program.forward()


def backward(program: Program, clock: Clock) -> None:
    """Backward."""
    loss = program.forward()
    with clock.running():
        backward_of(loss)


class Bare(TorchFunctionMode):
    """A mode that does nothing: the least that seeing every torch call costs."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def bare_mode(program: Program, clock: Clock) -> None:
    """Forward under a mode that does nothing."""
    with Bare(), clock.running():
        program.forward()


def bare_walk(program: Program, clock: Clock) -> None:
    """Every node's name, its edges, and the shape and dtype of its outputs."""
    loss = program.forward()
    with clock.running():
        _walk_bare(loss)
    let_go(loss)


def _walk_bare(loss: torch.Tensor) -> list[tuple[Any, ...]]:
    found, waiting = {loss.grad_fn}, [loss.grad_fn]
    rows: list[tuple[Any, ...]] = []
    for node in waiting:
        if node is None:
            continue
        outputs = [(tuple(one.shape), one.dtype) for one in node._input_metadata]
        rows.append((node.name(), outputs, node.next_functions))
        for target, _ in node.next_functions:
            if target is not None and target not in found:
                found.add(target)
                waiting.append(target)
    return rows


def empty_hooks(program: Program, clock: Clock) -> None:
    """Backward with a hook on every node that does nothing."""
    _hooked(program, clock, _do_nothing)


def norm_hooks(program: Program, clock: Clock) -> None:
    """Backward with a hook on every node that reads what the node sends, and keeps nothing."""

    def read(sent: Sequence[torch.Tensor | None], _received: object) -> None:
        for gradient in sent:
            if gradient is not None and not gradient.is_sparse:
                torch.linalg.vector_norm(gradient).item()

    _hooked(program, clock, read)


def _do_nothing(_sent: object, _received: object) -> None:
    pass


def _hooked(program: Program, clock: Clock, hook: Callable[..., None]) -> None:
    loss = program.forward()
    assert loss.grad_fn is not None
    walked = walk([loss.grad_fn])
    make_release_safe(walked)
    with clock.running():
        for node in walked.nodes:
            node.register_hook(hook)
        backward_of(loss)


def backward_of(loss: torch.Tensor) -> None:
    """The program's own call."""
    loss.backward()  # type: ignore[no-untyped-call]


def let_go(loss: torch.Tensor) -> None:
    # A deep graph whose nodes python has seen cannot be dropped just like that.
    if loss.grad_fn is not None:
        make_release_safe(walk([loss.grad_fn]))


# ---------------------------------------------------------------------- gradscope


def recording(program: Program, clock: Clock) -> None:
    """Forward, recorded."""
    recorder = Recorder().start()
    try:
        with clock.running():
            program.forward()
    finally:
        recorder.stop()


def graph(program: Program, clock: Clock) -> None:
    """From the loss to the finished Graph."""
    recorder = Recorder().start()
    try:
        loss = program.forward()
    finally:
        recorder.stop()
    scopes = Scopes.of_namespaces([{"model": program.module, "loss": loss}])
    with clock.running(), collector_paused():
        Probe([loss], recorder, scopes)


def gradients(program: Program, clock: Clock) -> None:
    """Backward with the norm of the gradient on every edge."""
    loss = program.forward()
    assert loss.grad_fn is not None
    walked = walk([loss.grad_fn])
    make_release_safe(walked)
    with clock.running(), collector_paused():
        flow = EdgeGradients(walked, GradientTable())
        flow.seed(0, 0, torch.ones(()))
        with flow.hooked():
            backward_of(loss)
        flow.end()
        flow.table.finish()


def everything(program: Program, clock: Clock) -> None:
    """Forward and backward as under ``gradscope backward``, up to the finished Report."""
    with clock.running():
        watched(program)


def watched(program: Program) -> Report:
    """The report on one step of a program that makes its backward call itself."""
    watcher = Watcher(Request(gradients=True, run_on=True), Sources())
    watcher.recorder.start()
    try:
        loss = program.forward()
        loss.backward()  # type: ignore[no-untyped-call]
    finally:
        watcher.recorder.stop()
    return _answer(watcher)


def traced(program: Program) -> Report:
    """The report on the graph of a program that makes no backward call."""
    watcher = Watcher(Request(gradients=False), Sources())
    watcher.recorder.start()
    try:
        loss = program.forward()
    finally:
        watcher.recorder.stop()
    watcher.finish({"loss": loss}, None, None, [])
    return _answer(watcher)


def _answer(watcher: Watcher) -> Report:
    assert watcher.report is not None, watcher.error
    return watcher.report


# ---------------------------------------------------------------------- other tools


def torchviz(program: Program, clock: Clock) -> None:
    """Forward, the graph as torchviz describes it to Graphviz, backward: no gradient is shown."""
    from torchviz import make_dot

    with clock.running():
        loss = program.forward()
        make_dot(loss, params=dict(program.module.named_parameters()))
        backward_of(loss)


def torchview(program: Program, clock: Clock) -> None:
    """The graph that torchview makes of a forward of its own, without gradients."""
    from torchview import draw_graph

    with clock.running():
        draw_graph(program.module, program.inputs, device="cpu", mode="train", expand_nested=True)


def torchlens(program: Program, clock: Clock) -> None:
    """Forward and backward under TorchLens, with all gradients saved."""
    import torchlens as lens
    from torchlens.options import CaptureOptions

    with clock.running():
        options = CaptureOptions(backward_ready=True, save_grads=True)
        trace = lens.trace(program.module, list(program.inputs), capture=options)
        trace.log_backward(trace[trace.output_layers[0]].out)


PLAIN = {
    "step": Subject(step, "step"),
    "forward": Subject(forward, "forward"),
    "backward": Subject(backward, "backward"),
    "bare mode": Subject(bare_mode, "forward"),
    "bare walk": Subject(bare_walk, "step"),
    "empty hooks": Subject(empty_hooks, "backward"),
    "norm hooks": Subject(norm_hooks, "backward"),
}
OWN = {
    "everything": Subject(everything, "step"),
    "recording": Subject(recording, "forward"),
    "graph": Subject(graph, "bare walk"),
    "gradients": Subject(gradients, "backward"),
}
PEERS = {
    "torchviz": Subject(torchviz, "step"),
    "torchview": Subject(torchview, "step"),
    "torchlens": Subject(torchlens, "step"),
}
SUBJECTS = PLAIN | OWN | PEERS
