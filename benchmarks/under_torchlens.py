"""Trace a program with TorchLens.

TorchLens takes a module and its input.  So that it can see programs without modules too, and the
loss, the whole program up to its first ``Tensor.backward()`` is made the ``forward`` of one module,
which returns the tensor that backward was called on; TorchLens then runs that backward itself.
The answer lists what its own tools point at, each as the frames of the call that made the op; there
is none where TorchLens cannot run:

- ``bisect_nan``: the first result that is not finite,
- ``bisect_nan_backward``: the op in whose backward the first such gradient was born,
- ``gradient_flow_audit_rows``: the ops where a vanishing, exploding or dead gradient begins.
"""

from __future__ import annotations

import contextlib
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torchlens
from torchlens import debug
from torchlens.options import CaptureOptions


class BackwardCalled(BaseException):
    """Carries the tensor that the program wants to go backward from."""

    def __init__(self, root: torch.Tensor) -> None:
        self.root = root


@contextlib.contextmanager
def _stopped_at_backward() -> Iterator[None]:
    original = torch.Tensor.backward

    def stop(root: torch.Tensor, *_args: object, **_kwargs: object) -> None:
        raise BackwardCalled(root)

    torch.Tensor.backward = stop  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.Tensor.backward = original  # type: ignore[method-assign]


class Whole(torch.nn.Module):
    """A program as a module."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self.program = program

    def forward(self, _unused: torch.Tensor) -> torch.Tensor:
        """The root of the first backward call."""
        try:
            with _stopped_at_backward():
                runpy.run_path(self.program, run_name="__main__")
        except BackwardCalled as call:
            return call.root
        raise RuntimeError("the program does not call Tensor.backward()")


def pointed_at(trace: Any) -> Iterator[str]:
    """The labels of the ops that TorchLens' tools name."""
    forward = debug.bisect_nan(trace)
    if forward.found and forward.label:
        yield forward.label
    birth = debug.bisect_nan_backward(trace).birth
    if birth is not None and birth.op_label:
        yield birth.op_label
    rows, _ = debug.gradient_flow_audit_rows(trace)
    yield from (row["op"] for row in rows if row["severity"] and row["is_frontier"])


def examine(program: str) -> list[list[tuple[str, int]]]:
    """For every op pointed at: the frames, file and line, of the call that made it."""
    options = CaptureOptions(backward_ready=True, save_grads=True)
    trace = torchlens.trace(Whole(program), [torch.zeros(1)], capture=options)
    trace.log_backward(trace[trace.output_layers[0]].out)
    ops = {op.label.partition(":")[0]: op for op in trace.ops}
    labels = dict.fromkeys(label.partition(":")[0] for label in pointed_at(trace))
    return [[(at.file, at.line_number) for at in ops[label].code_context] for label in labels]


def main(program: str, answer: Path) -> None:
    """Examine a program, and write the answer."""
    answer.write_text(json.dumps(examine(program)), "utf-8")
