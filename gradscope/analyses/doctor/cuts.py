"""Where gradient history ends: calls that take tensors with history and give some without.

Which leaves lie behind such a call is walked once a place, so that no graph is kept.  Knows nothing
of the Report's graph, only of sequence numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from gradscope.analyses.doctor.ancestry import is_rounded, leaves_behind, parts_behind, terms_of
from gradscope.analyses.doctor.known_cuts import (
    MAX_FOLLOWED,
    MOST_GRAPHS,
    CutCall,
    KnownCut,
    Taken,
)
from gradscope.analyses.doctor.switches import Switch, Switches
from gradscope.autograd.summary import is_small
from gradscope.autograd.tensors import (
    TensorRef,
    TensorTable,
    grad_fn_of,
    is_leaf_tensor,
    requires_grad,
)
from gradscope.model.observations import CutReason
from gradscope.recording.torch_call import TorchCall

MOST_SOURCES = 8
"""Cuts that one result is followed from."""

MAX_CUTS = 2_000
"""Places that are remembered."""

_NUMBERS = frozenset(
    ["item", "tolist", "numpy", "float", "int", "bool", "complex", "index", "array"]
)
_CASTS = frozenset(["int", "long", "short", "char", "byte", "to", "type", "type_as"])
_JOINING = frozenset(
    ["cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"]
)
_SHARING = ("data", "detach")
_ADDING = frozenset(["add", "radd", "iadd", "sub", "rsub", "isub", "stack"])
# What these give is a shape, a text, a hook or a tensor of new content: nobody expects a gradient
# to come back through them.
_HARMLESS = frozenset(
    [
        "grad",
        "requires_grad_",
        "retain_grad",
        "register_hook",
        "register_post_accumulate_grad_hook",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "rand_like",
        "randn_like",
        "randint_like",
        "new_zeros",
        "new_ones",
        "new_empty",
        "new_full",
        "new_empty_strided",
        "shape",
        "size",
        "repr",
        "format",
        "str",
        "len",
        "hash",
        "set_",
        "__reduce_ex__",
        "deepcopy",
    ]
)


_Key = tuple[int, str, CutReason, int]
"""Place, function, reason, and where history was switched off: code may be called from several
places where it is."""


class Cuts:
    """All places that cut history.

    Args:
        switches: tells where it is switched off.
    """

    def __init__(self, switches: Switches) -> None:
        self._switches = switches
        self.known: dict[_Key, KnownCut] = {}
        self.taken: list[Taken] = []
        """Those whose results are in the graph that backward goes through now."""
        self._results: TensorTable[list[CutCall]] = TensorTable(MAX_FOLLOWED)
        self._waiting: dict[int, CutCall] = {}

    def note_gradients(
        self, place: int, leaves: list[torch.Tensor], gradients: Iterable[Any]
    ) -> None:
        """``torch.autograd.grad`` has returned: without create_graph its results are a cut."""
        tensors = [item for item in gradients if isinstance(item, torch.Tensor)]
        if tensors and not any(map(requires_grad, tensors)):
            cut = self._know((place, "grad", "function", -1), tensors, leaves)
            if cut is not None:
                cut.itself = False  # a gradient is computed by all that lies between

    def note_data_set(self, call: TorchCall) -> None:
        """The program has given a tensor new numbers through ``.data``."""
        target, *values = call.operands
        computed = [tensor for tensor in values if grad_fn_of(tensor) is not None]
        if computed:
            key: _Key = (call.place, "data", "function", -1)
            self._know(key, [target], computed)

    def note_rewrapped(self, place: int, parameter: torch.Tensor, source: torch.Tensor) -> None:
        """The program has made a Parameter of a tensor with history."""
        key: _Key = (place, "Parameter", "function", -1)
        self._know(key, [parameter], [source])

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if self._results:
            self._follow(call)
        if call.in_graph or not any(map(requires_grad, call.operands)):
            return
        if call.function in _HARMLESS or not _gives_values(call):
            return
        self.add(call, _reason(), [tensor for tensor in call.operands if requires_grad(tensor)])

    def add(self, call: TorchCall, reason: CutReason, behind: list[torch.Tensor]) -> None:
        """A call has cut what these tensors, or leaves, had behind them."""
        is_off = reason in ("no_grad", "inference_mode")
        switch = self._switches.current if is_off else Switch()
        key: _Key = (call.place, call.function, reason, switch.place)
        cut = self._know(key, call.results, behind)
        if cut is not None:
            cut.within, cut.twin = switch.within, switch.twin

    def add_constant(self, call: TorchCall) -> KnownCut | None:
        """A loss function was given nothing that has history."""
        cut = self._know((call.place, call.function, "constant", -1), call.results, [])
        if cut is not None:
            sources = (known.cut for one in call.operands for known in self._calls_of(one))
            cut.sources = list(dict.fromkeys([*cut.sources, *sources]))[:MOST_SOURCES]
        return cut

    def note_history(self, call: TorchCall) -> None:
        """A loss function was given something that has."""
        cut = self.known.get((call.place, call.function, "constant", -1))
        if cut is not None:
            cut.shared = True

    def is_followed(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor without history was computed from what has one."""
        return tensor in self._results

    def same_memory(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The leaves whose own memory a tensor without history shows: that of ``leaf.data``."""
        calls = (one for one in self._calls_of(tensor) if one.cut.function in _SHARING)
        return [leaf for call in calls if call.leaves is not None for leaf in call.behind()]

    def feeds(self, tensors: Iterable[Any]) -> None:
        """These tensors were used where history is needed: what they come from has fed it."""
        for tensor in tensors:
            for call in self._calls_of(tensor):
                call.cut.fed = True

    def mark(self, sequences: Iterable[int], roots: Iterable[Any]) -> None:
        """Nodes with these sequence numbers are in a graph that backward walks from its roots."""
        waiting, self.taken = list(self._waiting.values()), []
        # This runs at every backward call, and only some programs have a cut that waits.
        walked = set(sequences) if waiting else set()
        adding = terms_of(roots).adding if any(call.added for call in waiting) else set()
        for call in waiting:
            taken = Taken(call, call.takers & walked, call.added & adding)
            call.cut.fed |= bool(taken.takers)
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

    def _know(
        self, key: _Key, results: list[torch.Tensor], behind: list[torch.Tensor]
    ) -> KnownCut | None:
        """A call at this place has cut what these tensors, or leaves, had behind them."""
        cut = self.known.get(key)
        found: list[torch.Tensor] | None = None
        if cut is None:
            if len(self.known) >= MAX_CUTS:
                return None
            found = leaves_behind(behind)
            cut = self.known[key] = KnownCut(*key, found)
            cut.itself = bool(behind)
            cut.discrete = not any(map(_is_continuous, results))
            cut.scalar = all(is_small(tensor, 1) for tensor in behind)
            cut.cast = key[1] in _CASTS and not any(map(is_rounded, behind))
        elif not cut.is_settled:
            found = leaves_behind(behind)
            cut.add(found)
        cut.itself &= all(map(is_leaf_tensor, behind))
        if results:
            leaves = None if found is None else list(map(TensorRef, found))
            parts = [] if found is None else parts_behind(behind)
            self._remember(results, [CutCall(cut, leaves, parts)])
        return cut

    def _follow(self, call: TorchCall) -> None:
        calls = [known for tensor in call.operands for known in self._calls_of(tensor)]
        if not calls:
            return
        if call.in_graph:
            self._take(call, calls)
        elif call.function == "numpy":
            for known in calls:
                known.cut.then = known.cut.then or _if_same_line(call, known.cut.place)
        elif any(_is_continuous(tensor) for tensor in call.results):
            # Copied from one parameter to another, as load_state_dict does, the numbers of the
            # first are those of the second.
            is_copied = any(requires_grad(t) and is_leaf_tensor(t) for t in call.results)
            calls = [known for known in calls if not (is_copied and known.cut.itself)]
            self._remember(call.results, calls)
        else:
            # Past a sample, an index or a comparison no gradient could have come to this cut.
            self._remember(call.results, [known for known in calls if known.cut.discrete])

    def _take(self, call: TorchCall, calls: list[CutCall]) -> None:
        """A call that made a node has taken the results of these."""
        node = call.sequence_range[1] - 1
        is_term = call.function in _ADDING and all(is_small(t, 1) for t in call.operands)
        for known in calls:
            if len(self._waiting) < MAX_FOLLOWED:
                self._waiting[id(known)] = known
                known.takers.add(node)
                if is_term and not _is_taken_off(call, known.cut):
                    known.added.add(node)
        if call.function in _JOINING:
            for tensor in call.operands:
                if not _is_continuous(tensor):
                    for known in self._calls_of(tensor):
                        known.cut.joined |= known.cut.cast

    def _remember(self, results: Iterable[torch.Tensor], calls: list[CutCall]) -> None:
        for tensor in results:
            # One call may cut some of its operands and take others that were cut before.  Bounded:
            # what is computed of much without history would carry the cuts of all of it.
            known = dict.fromkeys([*calls, *self._calls_of(tensor)])
            self._results[tensor] = list(known)[:MOST_SOURCES]

    def _calls_of(self, tensor: Any) -> list[CutCall]:
        return self._results.get(tensor, [])


def _is_taken_off(call: TorchCall, cut: KnownCut) -> bool:
    """Whether a constant is subtracted, as the entropy of a target is to make a divergence."""
    return (
        cut.reason == "constant"
        and call.function in ("sub", "isub")
        and isinstance(call.args[0], torch.Tensor)
        and requires_grad(call.args[0])
    )


def _is_continuous(tensor: torch.Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _if_same_line(call: TorchCall, place: int) -> str:
    here, there = call.places.line(call.place), call.places.line(place)
    return call.function if here is not None and here == there else ""


def _reason() -> CutReason:
    # Asked first: in inference mode grad is switched off as well.
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    return "function" if torch.is_grad_enabled() else "no_grad"


def _gives_values(call: TorchCall) -> bool:
    """Whether the result depends on the elements of its operands, and has no history."""
    if not call.results:
        return call.function in _NUMBERS
    # A new leaf made of tensors with history (torch.tensor(list, requires_grad=True)) is cut too;
    # the very operand back is not.
    operands = {id(tensor) for tensor in call.operands}
    return not any(
        requires_grad(tensor) and (id(tensor) in operands or not is_leaf_tensor(tensor))
        for tensor in call.results
    )
