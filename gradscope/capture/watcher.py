"""Takes the one report that was asked for: at a backward call of the program, or when it has
ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import torch

from gradscope.capture.calls import BackwardCall, edge_of
from gradscope.capture.names import Scopes, value_in_frame
from gradscope.capture.probe import Detail, Probe
from gradscope.capture.recorder import Recorder
from gradscope.capture.request import Request
from gradscope.capture.roots import (
    named_root,
    no_graph,
    only_result,
    result_root,
    tensors_inside,
    unknown_root,
    usable_root,
)
from gradscope.capture.seed import implicit_gradient, parse_gradient
from gradscope.capture.source import Sources
from gradscope.capture.summary import SMALL
from gradscope.errors import CaptureError, GradscopeError, SeedError
from gradscope.report import Report
from gradscope.target import StopProgram


class Watcher:
    """Records a program and answers one :class:`Request`.

    After the program has ended, ``report`` is the answer or ``error`` says why there is none;
    ``failure`` is a fault of our own, kept so that the program does not get to see it.
    """

    def __init__(self, request: Request, sources: Sources) -> None:
        self.report: Report | None = None
        self.error: GradscopeError | None = None
        self.failure: Exception | None = None
        self.calls = 0
        self._request = request
        self._detail = Detail(request.values, request.saved)
        keep = self._detail.keep if request.values else SMALL
        self.recorder = Recorder(sources, self._on_backward, keep)

    @property
    def answered(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.report is not None or self.error is not None or self.failure is not None

    # ------------------------------------------------------------------ while it runs

    def _on_backward(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        call = BackwardCall.parse(func, args, kwargs, frame)
        if call is None:
            return func(*args, **kwargs)
        self.calls += 1
        if self.answered or self.calls < self._request.call:
            return self._let_run(call)
        try:
            result = self._look_at(call, frame)
        except GradscopeError as error:
            self.error = error
        except Exception as error:
            self.failure = error
        else:
            if not self.answered or self._request.run_on:
                return result[0] if result else self._let_run(call)
            if result and isinstance(result[0], BaseException):
                raise result[0]
        raise StopProgram

    def _look_at(self, call: BackwardCall, frame: FrameType) -> tuple[Any] | None:
        """Answer the request here if it can be; the call's result in a tuple if it was made."""
        scopes = Scopes.of_frames(frames_from(frame))
        if self._request.root is not None:
            root = named_root(self._request.root, scopes, self.recorder)
            if root is not None:
                self._take(root, scopes)
        elif not self._request.gradients:
            self.report = self._probe(call.roots, scopes).report()
        elif self._request.gradient is not None:
            self._take(_single(call), scopes)
        else:
            return (self._watch(call, scopes),)
        return None

    def _watch(self, call: BackwardCall, scopes: Scopes) -> Any:
        if call.batched:
            raise CaptureError(
                "this torch.autograd.grad call is vectorised (is_grads_batched), so its gradients "
                "cannot be read one by one",
                "look at one row: --root NAME --gradient onehot:0",
            )
        probe = self._probe(call.roots, scopes)
        result, flowed, notes = probe.watch(call, self.calls)
        self.report = probe.report([flowed], notes + self._futile_reads(call.frame))
        return result

    def _futile_reads(self, frame: FrameType) -> list[str]:
        """Remarks on lines near the call that will find None in the ``.grad`` of a non-leaf."""
        lines: dict[str, list[int]] = {}
        for line, path in self.recorder.sources.grad_reads(frame.f_code):
            tensor = value_in_frame(path, frame)
            if isinstance(tensor, torch.Tensor) and tensor.grad_fn and not tensor.retains_grad:
                lines.setdefault(path, []).append(line)
        return [
            f"{path}.grad, read at line {', '.join(map(str, sorted(set(numbers))))}, stays None: {path} "
            f"is not a leaf, and torch keeps such a gradient only after {path}.retain_grad(). "
            "It is shown here."
            for path, numbers in lines.items()
        ]

    def _let_run(self, call: BackwardCall) -> Any:
        # A root that has not come up yet may be part of this graph, whose buffers it will need.
        waiting = self._request.root is not None and not self.answered
        if not call.retain_graph and not waiting:
            latest = max(edge_of(root)[0]._sequence_nr() for root in call.roots)
            self.recorder.note_freed(call.frame, latest)
        return call.run(retain_graph=True if waiting else None)

    # ------------------------------------------------------------------ when it has ended

    def finish(self, namespace: Mapping[str, Any], value: object) -> None:
        """The program ran to its end: answer from what it left, or set ``error``."""
        if self.answered:
            return
        try:
            scopes = Scopes.of_namespaces([{**namespace, "_": value}])
            self._take(self._final_root(scopes, value), scopes)
        except GradscopeError as error:
            self.error = error

    def finish_failed(self, frames: list[FrameType], sentence: str) -> None:
        """The program failed: show the graph it had made by then, if any."""
        if self.answered:
            return
        scopes = Scopes.of_frames(frames)
        found = [tensor for _, tensor in tensors_inside(self.recorder.last, "_")]
        try:
            if self._request.root is not None:
                root = named_root(self._request.root, scopes, self.recorder)
                found = [root] if root is not None else found
            if found and found[-1].grad_fn is not None:
                self.report = self._probe(found[-1:], scopes).report(notes=[sentence])
        except GradscopeError as error:
            self.error = error

    def _final_root(self, scopes: Scopes, value: object) -> torch.Tensor:
        request = self._request
        if request.root is not None:
            named = named_root(request.root, scopes, self.recorder)
            if named is None:
                raise unknown_root(request.root, scopes)
            return named
        if self.calls:
            raise CaptureError(
                f"the program made {self.calls} backward call{'s' * (self.calls > 1)}, "
                f"so there is no call {request.call}",
                f"--call takes 1 to {self.calls}",
            )
        if isinstance(value, torch.Tensor):
            return usable_root(value, "_", self.recorder)
        root = result_root(value, "the target")
        root = root if root is not None else only_result(self.recorder, scopes)
        if root is None:
            raise no_graph(self.recorder)
        return root

    def _take(self, root: torch.Tensor, scopes: Scopes) -> None:
        probe = self._probe([root], scopes)
        if not self._request.gradients:
            self.report = probe.report()
            return
        text = self._request.gradient
        seed = (
            implicit_gradient(root) if text is None else parse_gradient(text, root, scopes.merged())
        )
        self.report = probe.report([probe.own_pass(seed)])

    def _probe(self, roots: list[Any], scopes: Scopes) -> Probe:
        return Probe(roots, self.recorder, scopes, self._detail)


def frames_from(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those that called it, up to and including the first module level."""
    while frame is not None:
        yield frame
        if frame.f_code.co_name == "<module>":
            return
        frame = frame.f_back


def _single(call: BackwardCall) -> torch.Tensor:
    root = call.roots[0]
    if len(call.roots) != 1 or not isinstance(root, torch.Tensor):
        raise SeedError(
            f"the program's backward call starts from {len(call.roots)} tensors at once",
            "choose one of them: --root NAME",
        )
    return root
