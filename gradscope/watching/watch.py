"""From backward calls and steps to rows; and what each term of a loss brings to the parts of a
model, measured before the backward call.

The graph was not recorded: a term is called by the variable that holds it, or by its operation.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import torch
from torch.amp import grad_scaler
from torch.optim import optimizer as optimizer_hooks

from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.isolation import Aside, fault_of, is_captured
from gradscope.autograd.nodes import leaf_of
from gradscope.autograd.originals import kinds_of
from gradscope.errors import GradscopeError, described
from gradscope.graphing.study import studied_call
from gradscope.handlers import let_pass
from gradscope.model.request import SplitStudy
from gradscope.model.rows import Row, TermRow, term_rows
from gradscope.model.studies import Split, SplitLeaf
from gradscope.patched import Patched
from gradscope.recording.compiler import keep_out
from gradscope.recording.recorder import Recorder
from gradscope.recording.stand_in import warning_places
from gradscope.watching.across_ranks import Between, judged
from gradscope.watching.arrivals import (
    Arrivals,
    HiddenFromProgram,
    in_pass,
    tapped,
    tidy,
    untraced,
)
from gradscope.watching.full_looks import FullLooks
from gradscope.watching.norms import HasParameters, ModelParameters
from gradscope.watching.pending import (
    Pending,
    RunningCall,
    Scalers,
    Stepping,
    holders,
    note_step,
    sampled,
)
from gradscope.watching.turns import Turns


class TermNorms:
    """Measures terms; ``problem`` is told once why it cannot."""

    def __init__(self, problem: Callable[[str], None]) -> None:
        self._problem = problem
        self._has_told = False
        # Never started: it says which frames are the program's.
        self._recorder = Recorder()

    def of_call(
        self, roots: Sequence[Any], gradients: Sequence[torch.Tensor | None], own: ModelParameters
    ) -> Mapping[str, TermRow]:
        """The terms of a call that is about to be made, in their order; none where it has one, or
        where they cannot be sent alone."""
        call = BackwardCall([*roots], [*gradients], [], sys._getframe(), lambda: None)
        split: Split
        try:
            live, split = studied_call(SplitStudy("term", only_leaves=True), call, self._recorder)
        except GradscopeError as error:
            if not self._has_told:
                self._has_told = True
                self._problem(f"a backward call is not told by term: {error.what}")
            return {}
        parts: dict[str, list[SplitLeaf]] = {name: [] for name in own.parts}
        part_of = {at: name for name, positions in own.parts.items() for at in positions}
        for leaf in split.leaves:
            tensor = leaf_of(live.probe.walked.nodes[live.probe.graph.leaves[leaf.leaf].node])
            position = own.positions.get(id(tensor))
            if position is not None:
                parts[part_of[position]].append(leaf)
        return term_rows(split, parts)


_numbers = count()
"""Of the watches of this process, which are the same in all processes of a job."""

MANY_STEPS = 20
"""After so many of others in a row it is said that the model is not the one that is trained."""


class Watch:
    """Watches the gradients of one model from :meth:`start` to :meth:`stop`.

    ``problems`` are lines on what did not go as it should; the program never gets an exception.

    Args:
        model: its parameters are asked for anew at each step that is looked at.
        every: of so many steps one is looked at; None: of ten, and each of the first twenty.
        take: gets each row; may raise whatever it likes.
        tell: called with each problem, and with what full looks find.
        keep: how many of these there are at most.
        log: the file that their reports are kept beside.
        rank: of this process.
        by_term: each call that is looked at is taken apart by the terms of its loss, too.
    """

    def __init__(
        self,
        model: HasParameters,
        every: int | None,
        take: Callable[[Row], object],
        tell: Callable[[str], None],
        keep: int,
        log: Path | None,
        rank: int,
        by_term: bool = False,
    ) -> None:
        self.problems: list[str] = []
        self._model = model
        self._take_row = take
        self._tell = tell
        self._members = ModelParameters.of(model)
        self._turns = Turns(every)
        self._looks = FullLooks(
            *(keep, log, rank, self._say_found, self._calls_made, self._deliver)
        )
        self._scalers = Scalers()
        self._terms = TermNorms(self._problem) if by_term else None
        self._call: RunningCall | None = None
        self._pending: Pending | None = None
        self._rows: list[Pending] = []
        self._ranks: Between | None = None
        self._number = next(_numbers)
        self._callers: set[int] = set()
        self._inside: set[int] = set()
        """The threads that have made a backward call, and those that make one now."""
        self._is_beside = self._was_beside = False
        """Whether others have made one while this one runs, or while any ran."""
        self._stepping = Stepping()
        self._is_known = self._is_over = False
        self._process = os.getpid()
        self._delivering = threading.RLock()
        self._foreign_steps = 0
        self._handles: list[Any] = []
        self._taps: list[Patched] = []

    # ------------------------------------------------------------------ installing

    def start(self) -> None:
        keep_out()
        warning_places.start()
        self._taps.append(tapped(torch.autograd, "_engine_run_backward", self._around_engine))
        for kind in kinds_of(grad_scaler.GradScaler):
            for name, around in (("scale", self._around_scale), ("step", self._around_step)):
                if name in vars(kind):
                    self._taps.append(tapped(kind, name, around))
        self._handles = [
            optimizer_hooks.register_optimizer_step_pre_hook(self._step_begins),
            optimizer_hooks.register_optimizer_step_post_hook(self._step_ends),
        ]

    def stop(self, is_cut_short: bool = False) -> None:
        """Leave everything as it was, and write what waits; of a training that an exception has
        ended it is not said what it has not done."""
        with HiddenFromProgram(self._note_fault):
            # First, for it has begun last.
            self._looks.end()
        for handle in self._handles:
            handle.remove()
        for tap in reversed(self._taps):
            tap.stop()
        warning_places.stop()
        # The log is that of the process which began it.
        if os.getpid() == self._process:
            with Aside(self._note_fault):
                self._close()
                if not self._are_of_many:
                    tidy(self._members.parameters)
            if not is_cut_short:
                self._conclude()
            # What another thread gives is out before.
            with self._delivering:
                self._deliver(may_begin=False)
            self._looks.conclude()
            if self._ranks is not None:
                rows: list[Row] = []
                with HiddenFromProgram(self._note_fault):
                    rows = self._ranks.conclude(self._say, self._problem)
                self._put(rows)
        self._is_over, self._call = True, None

    def _conclude(self) -> None:
        if not self._turns.calls:
            self._problem(
                "no backward call has brought this model a gradient: is another one trained?"
            )
        elif self._foreign_steps > MANY_STEPS:
            self._problem(
                f"the last {self._foreign_steps} steps were of optimizers that hold no parameter "
                "of this model: was it replaced by another?"
            )

    def _is_away(self) -> bool:
        return self._is_over or os.getpid() != self._process or is_captured()

    @property
    def _are_of_many(self) -> bool:
        """Whether calls were made by several threads, which may not be over in the same order."""
        return len(self._callers) > 1

    @property
    def _is_due(self) -> bool:
        return self._turns.is_due or self._looks.is_asked

    def _calls_made(self) -> float:
        # What waits for a call of a watch that is over need not wait any longer.
        return inf if self._is_over else self._turns.calls

    def _note_fault(self, error: Exception) -> None:
        self._problem(fault_of(error).what)
        self._is_over = True

    def _problem(self, line: str) -> None:
        self.problems.append(line)
        self._say(line)

    def _say(self, line: str) -> None:
        try:
            self._tell(line)
        except Exception as error:  # nobody would read it
            let_pass(error)

    def _say_found(self, line: str) -> None:
        # What the others find, rank 0 says.
        if self._ranks is None or not self._ranks.job.rank:
            self._say(line)

    # ------------------------------------------------------------------ a backward call

    def _around_engine(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        # A backward function may call backward, as reentrant checkpoints do.
        thread = threading.get_ident()
        if self._is_away() or in_pass() or thread in self._inside:
            return original(*args, **kwargs)
        self._callers.add(thread)
        self._inside.add(thread)
        if len(self._inside) > 1:
            self._is_beside = True
            try:
                return original(*args, **kwargs)
            finally:
                self._inside.discard(thread)
        try:
            with HiddenFromProgram(self._note_fault):
                self._looks.end_past()
                self._call_begins(args[0], args[1] if kwargs.get("accumulate_grad") else None)
            result = original(*args, **kwargs)
            with HiddenFromProgram(self._note_fault):
                self._call_ends(args[0])
            self._deliver(is_call=True)
        finally:
            call, self._call = self._call, None
            if call is not None and call.arrivals is not None:
                call.arrivals.end()
            self._is_beside = False
            self._inside.discard(thread)
        return result

    def _call_begins(self, roots: Any, gradients: Any) -> None:
        if not self._is_known:
            # Not sooner, because optimizers are often made after the block has begun.
            self._is_known = True
            self._turns.expect(holders(self._members))
        call = RunningCall.begun(self._members, self._scalers.scale_of(roots), self._turns.step)
        pending = self._pending
        is_added = pending is not None and pending.is_added_to(call, self._members)
        has_gradients = any(gradient is not None for gradient, _ in call.before.values())
        self._turns.call_begins(self._stepping.is_inside or is_added, has_gradients)
        call.step = self._turns.step
        if self._is_due:
            self._ranks = self._ranks or Between.of_program(self._number)
            norms = call.used.norms if self._ranks else None
            call.arrivals = Arrivals(self._members.parameters, norms, self._note_fault)
            # Not of ranks: a node called alone may be a collective.
            if self._terms is not None and gradients is not None and not self._ranks:
                call.terms = self._terms.of_call(roots, gradients, self._members)
        self._call = call

    def _call_ends(self, roots: Any) -> None:
        call = self._call
        if call is None:
            return
        # Not as it is now: a hook may have made a step meanwhile.
        due = call.arrivals is not None
        # Not before, when FSDP has other parameters in the model than those of the optimizer.
        if due:
            self._members = ModelParameters.of(self._model)
        reached = call.reached(self._members)
        if self._is_beside:
            # Asked last: of what has changed meanwhile nobody knows by which call.
            if not self._was_beside:
                self._was_beside = True
                self._problem("of backward calls that threads make at once no rows are written")
            self._turns.calls += 1
            self._close()
            return
        if not (reached or call.has_steps):
            # A call for another model, or one of `torch.autograd.grad`; or it has others now.
            if self._pending is None:
                self._members = ModelParameters.of(self._model)
            return
        earlier, is_alone = self._pending, not self._are_of_many
        if due and is_alone and earlier is not None and earlier.is_added_to(call, self._members):
            self._pending = None
        else:
            self._close()
            earlier = None
        self._foreign_steps = 0
        self._turns.calls += 1
        if due:
            self._pending = Pending.of(call, reached, self._members, self._turns, earlier)
            self._pending.note_loss(roots)
        if call.has_steps:
            self._close()
            self._turns.all_made()

    def _around_scale(self, original: Any, scaler: Any, *args: Any, **kwargs: Any) -> Any:
        losses = original(scaler, *args, **kwargs)
        if not self._is_away():
            with HiddenFromProgram(self._note_fault):
                if scaler.is_enabled():
                    self._scalers.scaled(scaler, losses)
        return losses

    # ------------------------------------------------------------------ a step

    def _around_step(
        self, original: Any, scaler: Any, optimizer: Any, *args: Any, **kwargs: Any
    ) -> Any:
        made = self._stepping.made
        result = original(scaler, optimizer, *args, **kwargs)
        if self._is_away() or self._stepping.made != made:
            return result
        with HiddenFromProgram(self._note_fault):
            if self._members.held_by(optimizer):
                self._step_made(optimizer, Pending.leave_out)
        self._deliver()
        return result

    def _step_made(self, optimizer: Any, note: Callable[[Pending], None]) -> None:
        step, pending = self._turns.step, self._pending
        self._turns.step_made(optimizer)
        if pending is not None and pending.is_for(optimizer):
            note(pending)
            # Another optimizer may use the rest.
            if pending.is_used_up or self._turns.step != step:
                self._close()

    @untraced
    def _step_begins(self, optimizer: Any, _args: object, _kwargs: object) -> None:
        if self._is_away():
            return
        with HiddenFromProgram(self._note_fault):
            self._looks.tidy()
            own, held = self._stepping, self._members.held_by(optimizer)
            own.optimizer, own.samples, own.is_inside = optimizer, (), bool(held)
            if not held:
                self._foreign_steps += 1
            # A closure makes its backward calls during the step.
            elif self._pending is not None or self._is_due:
                own.samples = sampled(held)

    @untraced
    def _step_ends(self, optimizer: Any, _args: object, _kwargs: object) -> None:
        if self._is_away():
            return
        with HiddenFromProgram(self._note_fault):
            own = self._stepping
            taken = own.samples if own.optimizer is optimizer else ()
            own.optimizer, own.samples, own.is_inside = None, (), False
            held = self._members.held_by(optimizer)
            if not held:
                return
            own.made += 1
            call = self._call
            if call is not None and in_pass():
                # The optimizer lives in a hook of its parameter.
                call.has_steps = True
                if call.arrivals is not None:
                    note_step(held, taken, call.used)
                return
            self._step_made(optimizer, lambda one: one.take_step(optimizer, taken))
        # Torch bears no new hooks until it has called the last one.
        post = self._handles[1]
        self._deliver(may_begin=next(reversed(post.hooks_dict_ref())) == post.id)

    # ------------------------------------------------------------------ a row

    def _close(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            self._rows.append(pending)

    def _deliver(self, may_begin: bool = True, is_call: bool = False) -> None:
        # One thread at a time, for rows are in the order of their calls.
        if self._looks.is_inside or not self._delivering.acquire(blocking=False):
            return
        try:
            self._give(may_begin, is_call)
        finally:
            self._delivering.release()

    def _give(self, may_begin: bool, is_call: bool) -> None:
        rows: list[Row] = []
        with HiddenFromProgram(self._note_fault):
            pending, self._rows = self._rows, []
            if self._ranks is not None and is_call:
                # All have begun this call, and what they have told of the one before is here.
                rows += self._ranks.rows(self._say)
            for one in pending if not self._is_over else ():
                rows += judged(one, self._looks, self._ranks)
            if may_begin:
                self._looks.begin(self._are_of_many)
        self._put(rows)

    def _put(self, rows: list[Row]) -> None:
        # Not aside: the program's own function is called as it would be elsewhere.
        try:
            for row in rows if not self._is_over else []:
                self._take_row(row)
        except Exception as error:
            let_pass(error)
            # Never again: a disk stays full.
            self._is_over = True
            self._problem(f"no more rows are written: {described(error)}")
