"""What happens from one backward call of a run to the next, as entries of the log.

Everything here is done at every call, however closely that is looked at, so it must be cheap.
Knows nothing of which call is reported, nor of the Report.
"""

from __future__ import annotations

import math

import torch

from gradscope.analyses.doctor.capture import Capture
from gradscope.analyses.doctor.carriers import StaleParts
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.report_builder import StepLog
from gradscope.analyses.training.leaves import MAX_LEAVES
from gradscope.analyses.training.loop_order import ids_of
from gradscope.autograd.nodes import sequence_number
from gradscope.autograd.tensors import TensorRef, TensorTable, grad_fn_of
from gradscope.escaping import message
from gradscope.model.observations import Step
from gradscope.model.plain import Number, number
from gradscope.recording.wrappers import shards

# Torch's words for an input that is not in the graph.
_NOT_REACHED = "appears to not have been used in the graph"


class StepTracker:
    """Follows the leaves of the program from call to call."""

    def __init__(self, listener: DoctorListener, log: StepLog) -> None:
        self._listener = listener
        self._log = log
        self._order = listener.optimizers.order
        self._accumulating = listener.optimizers.accumulating
        self._shards: TensorTable[TensorRef] = TensorTable(MAX_LEAVES)
        self._stale_parts = StaleParts(listener.recorder, self._order)
        self._last_sequence = 0
        self._reads = 0
        self._clipped = self._zeroed = 0

    def begin(self, made: Capture, loss: Number | None) -> None:
        """A call is about to be made."""
        listener, log, call = self._listener, self._log, made.call
        loop = listener.loop_calls
        edited = self._edited()
        listener.lost_terms.begin(call.accumulates)
        listener.optimizers.note_call()
        # First, because what follows forgets which gradients the last call had mixed.
        self._finish_last(edited)
        kept_leaves = self._kept(made) if call.accumulates else []
        changed, dropped = self._accumulating.before(kept_leaves, edited)
        step = Step(
            number=log.calls,
            accumulates=call.accumulates,
            loss=loss,
            nodes=len(made.nodes),
            origin=made.place,
            stepped=changed > 0,
            # Who has read the gradients may have used them by hand, without changing a leaf in
            # place.
            dropped=dropped if listener.leaves.reads == self._reads else 0,
            looked=listener.alterations.has_hooks or loop.clipped > self._clipped,
            zeroed=loop.zeroed_at if loop.zeroed > self._zeroed else None,
            in_closure=listener.optimizers.in_closure,
        )
        log.add(step)
        if changed:
            listener.carried.end_step()
        listener.carried.look(call.frame)
        if call.accumulates:
            self._note_start(made)
        listener.cuts.mark((node._sequence_nr() for node in made.nodes), call.roots)

    def _note_start(self, made: Capture) -> None:
        """Has a step changed the parameters since the graph was made?"""
        root = made.call.roots[0]
        made_by = grad_fn_of(root) if isinstance(root, torch.Tensor) else root.node
        if made_by is not None and len(made.call.roots) == 1:
            self._order.starts(made_by._sequence_nr(), made.place, made.leaves)
            if made.is_full:
                self._stale_parts.look(made)

    def end(self, made: Capture) -> Step:
        """A call was made, and what it left has been measured; its entry."""
        norms = made.leaf_norms()
        scale = self._listener.recorder.scaled.factor(made.call.roots[0])
        size = math.hypot(*(norm for _, norm in norms)) / (scale or 1.0)
        whole = number(size) if norms else None
        step = self._log.amend(norm=whole, scale=None if scale is None else number(scale))
        leaves, optimizers = self._listener.leaves, self._listener.optimizers
        optimizers.spoiling.note_call(self._log.calls, not isinstance(whole, str))
        reached = made.reached()
        leaves.note_reached(reached)
        leaves.note_moved([leaf for leaf, norm in norms if norm])
        if made.call.accumulates:
            optimizers.order.backward(ids_of(reached))
            if made.is_full:
                # It goes through all leaves that were ever used, which is too much for every call.
                leaves.note_filled()
            self._accumulating.after(self._kept(made))
        else:
            self._note_gradients(made)
        return step

    def _note_gradients(self, made: Capture) -> None:
        """What ``torch.autograd.grad`` returned may have no history, or it may have failed."""
        listener = self._listener
        if made.failure is None:
            if made.call.create_graph:
                listener.leaves.note_derived(made.leaves)
            else:
                listener.cuts.note_gradients(made.place, made.leaves, made.result)
            if any(getattr(gradient, "requires_grad", False) for gradient in made.result):
                # A loss of gradients goes through all of that graph, also where a derivative is
                # a constant, as by a bias.
                listener.leaves.note_reached(made.leaves)
        elif _NOT_REACHED in message(made.failure):
            for tensor in made.outside():
                listener.leaves.of(tensor).wanted = True

    def start_next(self, made: Capture) -> None:
        """What comes now belongs to the next call."""
        now = sequence_number()
        listener, backwards = self._listener, self._log.backwards
        listener.values_seen.start_step()
        listener.cuts.start_step()
        listener.alterations.start_step(self._last_sequence)
        listener.forget_old()
        accumulates = made.call.accumulates
        if accumulates and listener.derivatives is not None:
            # What torch.autograd.grad has passed by may be in the graph of a later call.
            listener.derivatives.end_step()
        if accumulates and backwards == 1:
            # What torch.autograd.grad did before was a part of a step.
            listener.carried.start_anew()
        if accumulates or not backwards:
            listener.carried.end_call(now)
        self._last_sequence = now
        self._reads, loop = listener.leaves.reads, listener.loop_calls
        self._clipped, self._zeroed = loop.clipped, loop.zeroed

    def finish(self) -> None:
        """The program has ended."""
        self._listener.lost_terms.settle()
        self._finish_last(self._edited())

    def has_never_stepped(self) -> bool:
        """Whether, at the end, nothing has used a gradient or looked at one."""
        listener = self._listener
        used = listener.optimizers.order.steps or listener.leaves.reads
        return not used and not self._accumulating.any_used(self._edited())

    def _edited(self) -> set[int]:
        return self._listener.recorder.events.edited_since(self._last_sequence)

    def _kept(self, made: Capture) -> list[torch.Tensor]:
        """The leaves; of those that FSDP2 fills anew for every call the shards, which stay."""
        if made.is_full:
            stays = shards(self._listener.recorder.modules.living_roots())
            for leaf in made.leaves if stays else ():
                if id(leaf) in stays:
                    self._shards[leaf] = TensorRef(stays[id(leaf)])
        if not len(self._shards):
            return made.leaves
        found = ((leaf, self._shards.get(leaf)) for leaf in made.leaves)
        kept = (leaf if shard is None else shard() for leaf, shard in found)
        return [leaf for leaf in kept if leaf is not None]

    def _finish_last(self, edited: set[int]) -> None:
        """What the program did after the last call tells whether it used a mixed gradient."""
        if self._log.latest is not None:
            self._log.amend(reused=self._accumulating.mixed_and_used(edited))
