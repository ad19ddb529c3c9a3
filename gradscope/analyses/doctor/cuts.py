"""Where gradient history ends: calls that take tensors with history and give some without.

A custom Function whose forward uses leaves that it was not given is one for these, also where its
result has a history: they get a gradient only where its backward sees to that, as a reentrant
checkpoint does by making its calls again.

Which leaves lie behind such a call is walked once a place, so that no graph is kept.  Knows nothing
of the Report's graph, only of sequence numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch

from gradscope.analyses.doctor.ancestry import (
    Near,
    are_related,
    leaves_behind,
    near_behind,
    terms_of,
)
from gradscope.analyses.doctor.cut_calls import (
    ADDING,
    MAX_FOLLOWED,
    MOST_GRAPHS,
    NUMBERS,
    SHARING,
    CutCall,
    KnownCut,
    PlainNumbers,
    if_same_line,
    is_continuous,
    is_nothing,
    reason_now,
    reason_of,
    values_of,
)
from gradscope.analyses.doctor.switches import Switch, Switches
from gradscope.autograd.elements import is_small
from gradscope.autograd.tensors import (
    TensorRef,
    TensorTable,
    base_of,
    grad_fn_of,
    is_leaf_tensor,
    is_learned_leaf,
    requires_grad,
)
from gradscope.model.observations import CutReason
from gradscope.recording.events import HARMLESS
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

MOST_SOURCES = 64
"""Cuts that one result is followed from, the latest; of those before one at each place."""

MAX_CUTS = 2_000
"""Places that are remembered."""

_INSIDE = -2
"""In the place of a switch: what a Function uses inside, whose result has a history."""

_Key = tuple[int, str, CutReason, int]
"""Place, function, reason, and where history was switched off: code may be called from several
places where it is."""


class Cuts:
    """All places that cut history.

    Args:
        recorder: knows how tensors came to be.
        switches: tells where history is switched off.
    """

    def __init__(self, recorder: Recorder, switches: Switches) -> None:
        self._recorder = recorder
        self._numbers = PlainNumbers(recorder.sources)
        self._switches = switches
        self.known: dict[_Key, KnownCut] = {}
        self.taken: list[CutCall] = []
        """Those whose results are in the graph that backward goes through now, with the nodes of
        this graph only."""
        self._results: TensorTable[list[CutCall]] = TensorTable(MAX_FOLLOWED)
        self._shown: TensorTable[tuple[str, TensorRef]] = TensorTable(MAX_FOLLOWED)
        self._waiting: dict[int, CutCall] = {}
        self._inside: dict[int, torch.Tensor] = {}

    # ------------------------------------------------------------------ what cuts

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if self._results:
            self._follow(call)
        if not call.operands:  # `torch.tensor(number)`
            self._remember(call.results, self._numbers.added(call))
        if call.in_graph:
            self._take_number(call)
        behind = [tensor for tensor in call.operands if requires_grad(tensor)]
        # Nodes may have been made on the way to a result that has none, as that of `argsort`.
        gives = behind and (values_of(call) if call.results else call.function in NUMBERS)
        if gives and call.function not in HARMLESS and not _is_sent(call):
            self.add(call, reason_now(torch.is_grad_enabled()), behind)
        if call.function in SHARING and call.results and call.operands:
            self._shown[call.results[0]] = call.function, TensorRef(base_of(call.operands[0]))

    def add(
        self, call: TorchCall, reason: CutReason, behind: list[torch.Tensor]
    ) -> KnownCut | None:
        """A call has cut what these tensors, or leaves, had behind them, operands or not."""
        values = values_of(call)
        cut = self.know(call.place, call.function, values, behind, reason, call.out)
        if cut is not None:
            cut.partial = len(values) < len(call.results)
        return cut

    def note_gradients(
        self, place: int, leaves: list[torch.Tensor], gradients: Iterable[Any]
    ) -> None:
        """``torch.autograd.grad`` has returned, without ``create_graph``: its results are a cut."""
        tensors = [item for item in gradients if isinstance(item, torch.Tensor)]
        if tensors and not any(map(requires_grad, tensors)):
            cut = self.know(place, "grad", tensors, leaves)
            if cut is not None:
                cut.itself = False  # a gradient is computed by all that lies between

    def note_set(self, call: TorchCall, function: str, target: torch.Tensor) -> None:
        """The program has given a tensor new numbers through ``.data``, or ``detach()``."""
        computed = [tensor for tensor in call.operands[1:] if grad_fn_of(tensor) is not None]
        if computed:
            self.know(call.place, function, [target], computed)

    def note_written(self, call: TorchCall) -> list[torch.Tensor]:
        """A call has changed a tensor in place: the one whose memory that shows, if it is what
        ``.data`` or ``detach()`` gave, or a view of it."""
        known = self._shown.get(base_of(call.operands[0])) if call.operands else None
        target = None if known is None else known[1]()
        if known is None or target is None:
            return []
        if call.in_graph:
            self.note_set(call, known[0], target)
        return [target]

    def note_inside(self, operands: Iterable[torch.Tensor]) -> None:
        """A call inside of a Function, whose forward runs without history: no cut of its own."""
        for tensor in operands:
            if is_learned_leaf(tensor) and len(self._inside) < MAX_FOLLOWED:
                # Held, for the few moments that the Function runs, so that no id is given away.
                self._inside[id(tensor)] = tensor

    def note_function(self, call: TorchCall) -> None:
        """A Function has returned: what was used inside it is behind its result."""
        inside, self._inside = self._inside, {}
        for given in call.operands:
            inside.pop(id(given), None)
        reason = reason_of(call.function)
        if inside and call.in_graph:
            cut = self._at((call.place, call.function, reason, _INSIDE), inside=True)
            if cut is not None:
                cut.add(inside.values())
                if not cut.feeds_graph:
                    self._wait(call, CutCall(cut, []))
        elif inside and not all(map(requires_grad, call.results)):
            cut = self.add(call, reason, list(inside.values()))
            if cut is not None:
                cut.ungiven = True

    # ------------------------------------------------------------------ what is known of a tensor

    def is_followed(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor without history was computed from what has one."""
        return tensor in self._results

    # ------------------------------------------------------------------ backward

    def note_refused(self, roots: Iterable[torch.Tensor]) -> None:
        """Torch has refused to start a backward call from these."""
        for root in roots:
            for call in self._calls_of(root):
                call.cut.feeds_graph = call.cut.refused = True

    def mark(self, sequences: Iterable[int], roots: Iterable[Any]) -> None:
        """Nodes with these sequence numbers are in a graph that backward walks from its roots."""
        # A root that is a leaf was cut off from all there is, and made to require a gradient.
        for root in roots:
            for call in self._calls_of(root) if isinstance(root, torch.Tensor) else ():
                call.cut.feeds_graph = call.cut.root = True
        waiting, self.taken = list(self._waiting.values()), []
        # This runs at every backward call, and only some programs have a cut that waits.
        walked = set(sequences) if waiting else set()
        adding = terms_of(roots).adding if any(call.added for call in waiting) else set()
        for call in waiting:
            taken = replace(call, takers=call.takers & walked, added=call.added & adding)
            call.cut.feeds_graph |= bool(taken.takers)
            call.cut.summand |= bool(taken.added)
            if taken.takers or taken.added:
                self.taken.append(taken)
            call.takers -= taken.takers
            call.age += 1
            # A graph may wait for others: the losses of two networks are often made together.
            if call.age == MOST_GRAPHS or not call.takers:
                del self._waiting[id(call)]
                call.takers, call.added, call.age = set(), set(), 0

    def start_step(self) -> None:
        """Forget results that have died."""
        self._results.forget_dead()
        self._shown.forget_dead()

    # ------------------------------------------------------------------ one call

    def know(
        self,
        place: int,
        function: str,
        results: list[torch.Tensor],
        behind: list[torch.Tensor],
        reason: CutReason = "function",
        number: object = None,
    ) -> KnownCut | None:
        """A call at this place has cut what these tensors, or leaves, had behind them; what it gave
        may be a plain number."""
        switch = self._switches.current if reason == "no_grad" else Switch()
        cut = self._at(
            (place, function, reason, switch.place),
            itself=bool(behind),
            switched=switch.place,
            scalar=all(is_small(tensor, 1) for tensor in behind),
            within=switch.within,
            twin=switch.twin,
            discrete=not any(map(is_continuous, results)),
        )
        if cut is None:
            return None
        known = CutCall(cut, None)
        if not cut.is_settled:
            found = leaves_behind(behind)
            cut.add(found)
            known.leaves, known.near = list(map(TensorRef, found)), near_behind(behind)
        cut.itself &= all(map(is_leaf_tensor, behind))
        if results or type(number) in (float, list):
            self._remember(results, [known])
            self._numbers.note(number, [known])
        return cut

    def _at(self, key: _Key, **known: Any) -> KnownCut | None:
        """What is known of the cuts of one place; ``known`` where they are met first, and None
        where no more are remembered."""
        cut = self.known.get(key)
        if cut is None and len(self.known) < MAX_CUTS:
            cut = self.known[key] = KnownCut(*key[:3], **known)
        return cut

    def _follow(self, call: TorchCall) -> None:
        calls = [known for tensor in call.operands for known in self._calls_of(tensor)]
        if not calls:
            return
        self._numbers.note(call.out, calls)
        if call.in_graph:
            self._take(call, calls)
        elif call.function == "numpy":
            for known in calls:
                known.cut.then = known.cut.then or if_same_line(call, known.cut.place)
        elif any(is_continuous(tensor) for tensor in call.results):
            # What has a history, or learns, is no value without one: `p.copy_(kept)`.
            self._remember((one for one in call.results if not requires_grad(one)), calls)
        else:
            # Past a sample, an index or a comparison no gradient could have come to this cut.
            self._remember(call.results, [known for known in calls if known.cut.discrete])

    def _take(self, call: TorchCall, calls: list[CutCall]) -> None:
        """A call that made a node has taken the results of these."""
        is_sum = call.function in ADDING
        is_asked = is_sum or any(one.cut.gathers for one in calls)
        others = _near_others(call) if is_asked else []
        # Who puts its own part back into what was gathered gives that its gradient.
        calls = [one for one in calls if not (one.cut.gathers and _is_related(one, others))]
        is_small_sum = is_sum and all(is_small(tensor, 1) for tensor in call.operands)
        # One that the other operand is near to stands for what all of them are taken for.
        is_apart = is_sum and not any(_is_related(one, others) for one in calls)
        # What is 0 adds nothing to the loss either: the density of a point mass at its point.
        added = {
            id(known)
            for tensor in (call.operands if is_sum else ())
            if not is_nothing(tensor)
            for known in self._calls_of(tensor)
        }
        for known in calls:
            node = self._wait(call, known)
            if node is None:
                continue
            is_added = is_small_sum or (is_apart and not known.cut.sets)
            if is_added and id(known) in added:
                known.added.add(node)

    def _take_number(self, call: TorchCall) -> None:
        """A call that made a node may have added a plain number."""
        if call.function in ADDING and all(is_small(tensor, 1) for tensor in call.operands):
            numbers = self._numbers.added(call)
            others = _near_others(call) if numbers else []
            for known in numbers:
                node = None if _is_related(known, others) else self._wait(call, known)
                if node is not None:
                    known.added.add(node)

    def _wait(self, call: TorchCall, known: CutCall) -> int | None:
        """The node that has taken a result, if there is room to wait for its graph."""
        node = call.sequence_range[1] - 1
        if len(self._waiting) >= MAX_FOLLOWED:
            return None
        self._waiting[id(known)] = known
        known.takers.add(node)
        return node

    def _remember(self, results: Iterable[torch.Tensor], calls: list[CutCall]) -> None:
        for tensor in results if calls else ():
            # One call may cut some of its operands and take others that were cut before.  Bounded,
            # but no place is left out: a loop comes by each again and again.
            known = list(dict.fromkeys([*calls, *self._calls_of(tensor)]))
            if len(known) > MOST_SOURCES:
                places = {id(one.cut): one for one in reversed(known)}
                known = list(dict.fromkeys([*known[:MOST_SOURCES], *places.values()]))
            self._results[tensor] = known

    def _calls_of(self, tensor: Any) -> list[CutCall]:
        return self._results.get(tensor, [])


def _is_sent(call: TorchCall) -> bool:
    """Whether torch itself takes the numbers, to send them to the processes it works with."""
    name = str(call.frame.f_globals.get("__name__"))
    return name.startswith(("torch.distributed.", "torch.nn.parallel."))


def _near_others(call: TorchCall) -> list[Near]:
    """What is near to each operand of a call that has a history."""
    return [near_behind([one]) for one in call.operands if requires_grad(one)]


def _is_related(known: CutCall, others: Iterable[Near]) -> bool:
    """Whether one of the tensors that are taken together with the result of a cut, of which this is
    near, is near to what was cut; it counts as that where nobody has looked."""
    return not known.near or any(are_related(known.near, other) for other in others)
