"""From backward calls and steps to rows."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.amp import grad_scaler
from torch.optim import optimizer as optimizer_hooks

from gradscope.autograd.elements import readable
from gradscope.autograd.isolation import Aside, fault_of
from gradscope.errors import described
from gradscope.model.rows import Row
from gradscope.watching.model_parameters import ModelParameters
from gradscope.watching.norms import Norms
from gradscope.watching.pending import Pending
from gradscope.watching.sinks import Sink
from gradscope.watching.turns import Turns

MOST_ELEMENTS = 65_536
"""Of each parameter, those whose change by a step is measured."""

MANY_STEPS = 20
"""After so many of others in a row it is said that the model is not the one that is trained."""

_autograd: Any = torch.autograd


class Watch:
    """Watches the gradients of one model from :meth:`start` to :meth:`stop`.

    ``problems`` are lines on what did not go as it should; the program never gets an exception.

    Args:
        model: its parameters are asked for anew at each step that is looked at.
        every: of so many steps one is looked at.
        sink: gets the rows.
        tell: called with each problem.
    """

    def __init__(
        self, model: torch.nn.Module, every: int, sink: Sink, tell: Callable[[str], None]
    ) -> None:
        self.problems: list[str] = []
        self._model = model
        self._sink: Sink | None = sink
        self._tell = tell
        self._members = ModelParameters.of(model)
        self._turns = Turns(every, self._is_held())
        self._before: list[tuple[Any, int]] | None = None
        self._pending: Pending | None = None
        self._samples: tuple[Any, list[tuple[int, torch.Tensor, torch.Tensor]]] | None = None
        self._scaler: Callable[[], Any] = lambda: None
        self._is_inside = False
        self._foreign_steps = 0
        self._handles: list[Any] = []
        self._originals: list[tuple[Any, str, Any, Any]] = []

    # ------------------------------------------------------------------ installing

    def start(self) -> None:
        """Begin to hear of backward calls and steps."""
        self._wrap(_autograd, "_engine_run_backward", self._watched_engine)
        self._wrap(grad_scaler.GradScaler, "scale", self._watched_scale)
        self._handles = [
            optimizer_hooks.register_optimizer_step_pre_hook(self._step_begins),
            optimizer_hooks.register_optimizer_step_post_hook(self._step_ends),
        ]

    def _is_held(self) -> bool:
        """Whether an optimizer that was made before holds a parameter of the model."""
        # `isinstance` would ask each of all objects for `__class__`, which may be computed.
        return any(
            issubclass(type(thing), optimizer_hooks.Optimizer) and bool(self._held(thing))
            for thing in gc.get_objects()
        )

    def stop(self) -> None:
        """Leave everything as it was, and write what waits."""
        for handle in self._handles:
            handle.remove()
        for owner, name, wrapper, original in reversed(self._originals):
            # Whoever has wrapped it since calls ours, which then only passes the call on.
            if getattr(owner, name) is wrapper:
                setattr(owner, name, original)
        self._originals.clear()
        self._close()
        self._conclude()
        if self._sink is not None:
            with Aside(self._note_fault):
                self._sink.close()
        self._sink, self._before, self._samples = None, None, None

    def _wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        wrapper = make(original)
        self._originals.append((owner, name, wrapper, original))
        setattr(owner, name, wrapper)

    def _conclude(self) -> None:
        if not self._turns.calls:
            self._problem("no backward call has brought this model a gradient")
        elif self._foreign_steps > MANY_STEPS:
            self._problem(
                f"the last {self._foreign_steps} steps were of optimizers that hold no parameter "
                "of this model: was it replaced by another?"
            )

    def _note_fault(self, error: Exception) -> None:
        self._problem(fault_of(error).what)
        self._sink = None

    def _problem(self, line: str) -> None:
        self.problems.append(line)
        self._tell(line)

    # ------------------------------------------------------------------ a backward call

    def _watched_engine(self, original: Any) -> Any:
        def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
            # A backward function may call backward, as reentrant checkpoints do; and of several
            # threads one is watched at a time.
            if self._is_inside or self._sink is None:
                return original(*args, **kwargs)
            self._is_inside = True
            try:
                self._call_begins()
                result = original(*args, **kwargs)
                self._call_ends()
            finally:
                self._is_inside = False
            return result

        return _engine_run_backward

    def _call_begins(self) -> None:
        self._close()
        with Aside(self._note_fault):
            self._turns.call_begins()
            if self._turns.is_due:
                self._members = ModelParameters.of(self._model)
            self._before = [(one.grad, _version(one.grad)) for one in self._members.parameters]

    def _call_ends(self) -> None:
        with Aside(self._note_fault):
            before, self._before = self._before or [], None
            now = [one.grad for one in self._members.parameters]
            reached = {
                position: gradient
                for position, (gradient, (old, version)) in enumerate(zip(now, before, strict=True))
                if gradient is not None and (gradient is not old or _version(gradient) != version)
            }
            if not reached:
                # A call for another model, or one of `torch.autograd.grad`; or it has others now.
                self._members = ModelParameters.of(self._model)
                return
            due, self._foreign_steps = self._turns.is_due, 0
            self._turns.call_made()
            if due:
                norms = Norms()
                found = norms.add(list(reached.values()))
                received = dict(zip(reached, found, strict=True))
                none = {position for position, gradient in enumerate(now) if gradient is None}
                scale = self._scale(norms)
                self._pending = Pending(
                    *(self._turns.step, self._turns.calls, self._members, norms),
                    *(received, none, scale),
                )

    def _scale(self, norms: Norms) -> int | None:
        scaler, self._scaler = self._scaler(), lambda: None
        # In public a scaler tells it only by waiting for the device.
        scale = getattr(scaler, "_scale", None)
        return norms.add_number(scale) if isinstance(scale, torch.Tensor) else None

    def _watched_scale(self, original: Any) -> Any:
        def scale(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            if scaler.is_enabled():
                self._scaler = weakref.ref(scaler)
            return original(scaler, *args, **kwargs)

        return scale

    # ------------------------------------------------------------------ a step

    def _step_begins(self, optimizer: Any, _args: object, _kwargs: object) -> None:
        with Aside(self._note_fault):
            self._samples = None
            held = self._held(optimizer)
            if not held:
                self._foreign_steps += 1
            # A closure makes its backward calls during the step.
            elif self._pending is not None or self._turns.is_due:
                taken = [
                    (position, live, live.clone())
                    for position in held
                    for live in _sample(self._members.parameters[position])
                ]
                self._samples = optimizer, taken

    def _step_ends(self, optimizer: Any, _args: object, _kwargs: object) -> None:
        held: list[int] = []
        with Aside(self._note_fault):
            held = self._held(optimizer)
            (owner, taken), self._samples = self._samples or (None, []), None
            pending = self._pending
            if held and pending is not None:
                pending.applied = self._norms_of_gradients(pending, held)
                # An optimizer that does the scaler's work leaves the step out by itself.
                found = getattr(optimizer, "found_inf", None)
                if pending.scale is not None and isinstance(found, torch.Tensor):
                    pending.skipped = pending.norms.add_number(found)
                if owner is optimizer:
                    self._measure(pending, taken)
        if held:
            self._close()
            self._turns.step_made(optimizer)

    def _held(self, optimizer: Any) -> list[int]:
        return self._members.positions_of(
            one for group in optimizer.param_groups for one in group["params"]
        )

    def _norms_of_gradients(self, pending: Pending, held: Sequence[int]) -> dict[int, int]:
        gradients = {
            position: gradient
            for position in held
            if (gradient := self._members.parameters[position].grad) is not None
        }
        found = pending.norms.add(list(gradients.values()))
        return dict(zip(gradients, found, strict=True))

    def _measure(
        self, pending: Pending, taken: Sequence[tuple[int, torch.Tensor, torch.Tensor]]
    ) -> None:
        taken = [one for one in taken if readable(one[1])]
        changes = pending.norms.add([live - old for _, live, old in taken])
        weights = pending.norms.add([old for _, _, old in taken])
        positions = (position for position, _, _ in taken)
        pending.changes = dict(zip(positions, zip(changes, weights, strict=True), strict=True))

    # ------------------------------------------------------------------ a row

    def _close(self) -> None:
        pending, self._pending = self._pending, None
        row: Row | None = None
        with Aside(self._note_fault):
            row = None if pending is None else pending.row()
        if row is None or self._sink is None:
            return
        # Not aside: it may be a function of the program.
        try:
            self._sink.put(row)
        except Exception as error:
            # Never again: a disk stays full.
            self._sink = None
            self._problem(f"no more rows are written: {described(error)}")


def _version(gradient: torch.Tensor | None) -> int:
    # Of a tensor made in inference mode torch keeps none.
    return -1 if gradient is None or gradient.is_inference() else gradient._version


def _sample(parameter: torch.Tensor) -> list[torch.Tensor]:
    """At most so many elements, evenly spaced, as one row; none where they cannot be had without a
    copy of all."""
    still = parameter.detach()
    if not (readable(still) and still.is_contiguous() and still.numel()):
        return []
    return [still.view(-1)[:: max(1, still.numel() // MOST_ELEMENTS)]]
