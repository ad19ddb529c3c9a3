"""Whether each token of a sequence is trained to tell the next one: the targets of a loss are
compared with the tokens that an embedding was given.  Where they are the tokens after the next,
labels were shifted twice.  Where they are the next, no position may see the one after it.

Some calls of each place are looked at, with tokens of this pass, of which a copy is kept.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import torch

from gradscope.analyses.doctor.attentions import attention_of
from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.autograd.elements import is_small
from gradscope.autograd.nodes import leaf_of, torch_name
from gradscope.autograd.tensors import grad_fn_of
from gradscope.model.observations import OddityKind
from gradscope.recording.torch_call import TorchCall

LOOKS = 3
"""Calls of each place that are looked at."""

LARGEST = 100_000
"""Tokens that are copied."""

MOST = 8
"""Copies, and places that see the next position, of one pass; nodes before a loss."""

SURE = 0.98
"""The share of targets that are the token so far behind, for it to be the rule."""

CHANCE = 0.5
"""The share that may be so at another distance."""

VARIED = 8
"""Different targets that are needed, for they could be the same by chance."""

OFFSETS = range(4)


class _Seeing(NamedTuple):
    """A place where positions see the one after them: of so many, and how large a share of each but
    the last, where that is not all; ``is_recurrent``: by a network of two directions."""

    length: int
    shares: torch.Tensor | None = None
    is_recurrent: bool = False
    place: int = -1


class _Targets(NamedTuple):
    """The length of the tokens, and how many targets count at each of their positions."""

    length: int
    counted: torch.Tensor


class TokenTargets(OddityFinder):
    """The tokens and the targets of this pass."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._tokens: list[torch.Tensor] = []
        self._seeing: list[_Seeing] = []
        self._looks: dict[int, int] = {}
        self._told: list[tuple[OddityKind, int]] = []
        self._is_over = self._is_fine = self._is_backward = False

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if not call.in_graph or len(call.operands) < 1:
            return
        if call.function == "embedding" and self._may_look(call):
            if self._is_over:
                self._tokens, self._seeing, self._told = [], [], []
                self._is_over = self._is_fine = self._is_backward = False
            tokens = min(call.operands, key=torch.Tensor.is_floating_point)
            if tokens.dim() == 2 and is_small(tokens, LARGEST) and len(self._tokens) < MOST:
                self._tokens.append(tokens.detach().clone())
        elif self._tokens and call.function in ("cross_entropy", "nll_loss"):
            self._compare(call)
        elif self._tokens and not self._is_over and len(self._seeing) < MOST:
            seeing = _sees_next(call)
            if seeing is not None and seeing.length > 2:
                self._seeing.append(seeing._replace(place=_place(call)))

    def _may_look(self, call: TorchCall) -> bool:
        looks = self._looks[call.place] = self._looks.get(call.place, 0) + 1
        return looks <= LOOKS

    def _compare(self, call: TorchCall) -> None:
        target = call.kwargs.get("target", (*call.args, None, None)[1])
        self._is_over = True
        if not isinstance(target, torch.Tensor) or target.is_floating_point():
            return
        if not is_small(target, LARGEST) or not self._may_look(call):
            return
        ignored = call.kwargs.get("ignore_index", (*call.args, *[-100] * 5)[4])
        related: list[tuple[int, _Targets]] = []
        for tokens in self._tokens:
            layouts = product((tokens, tokens.t()), (True, False))
            found = (_related(rows, target, along, ignored) for rows, along in layouts)
            related += (one for one in found if one is not None)
        self._is_backward |= any(offset == 0 for offset, _ in related)
        if _starts_late(call.operands[0]):
            related = []
        self._is_fine |= any(offset == 1 for offset, _ in related)
        for offset, counted in related:
            if not self._is_fine:
                kind: OddityKind = "target shifted" if offset else "target unshifted"
                self._told.append((kind, _place(call)))
                self._tell(kind, _place(call), offset)
            elif len(related) == 1:  # an encoder may see all of what its decoder is to tell
                self._look_ahead(counted)
        if self._is_fine:  # what else is asked of the same tokens comes beside that
            for kind, place in self._told:
                self._excuse(kind, place)
            self._told.clear()
            # Where another loss wants the tokens before, each has a direction of its own.
            for one in self._seeing if self._is_backward else ():
                if one.is_recurrent:
                    self._excuse("next seen", one.place)

    def _look_ahead(self, targets: _Targets) -> None:
        """The targets are the next tokens: does anything see them?"""
        lengths = [one.shape[1] for one in self._tokens if bool((one != one[:1]).any())]
        # Of two sequences of one length the other may be looked at whole.
        if lengths.count(targets.length) < 2:
            for one in self._seeing:
                if one.length == targets.length and _are_seen(one.shares, targets.counted):
                    self._tell("next seen", one.place, one.length)


def _place(call: TorchCall) -> int:
    """Where the program's own code makes a call, be it through a package that it uses."""
    frame = call.user
    while frame is not None and not call.places.is_own(frame.f_code):
        frame = frame.f_back
    return call.place if frame is None else call.places.number(frame)


def _starts_late(scores: torch.Tensor) -> bool:
    """Whether the first positions were left out: then there is no telling which a target is of."""
    node = grad_fn_of(scores)
    for _ in range(MOST):
        if node is None or leaf_of(node) is not None:
            break
        if torch_name(node).startswith("Slice") and node._saved_start:
            return True
        below = (one for one, _ in node.next_functions if one is not None)
        node = next((one for one in below if leaf_of(one) is None), None)
    return False


def _are_seen(shares: torch.Tensor | None, counted: torch.Tensor) -> bool:
    """Whether most targets that count are seen; a prefix of which none is asked may be."""
    if shares is None:
        return True
    width = min(len(shares), len(counted))
    seen, asked = shares[:width].cpu(), counted[:width].cpu()
    return float((seen * asked).sum()) > CHANCE * float(asked.sum())


def _related(
    rows: torch.Tensor, target: torch.Tensor, along: bool, ignored: int
) -> tuple[int, _Targets] | None:
    """How far behind each token its target stands, if that is the same nearly everywhere; the
    targets may lack the last ones.  ``along``: a row of tokens lies together in the targets."""
    count, length = rows.shape
    cut, more = divmod(target.numel(), count)
    if more or not 2 < length - 2 <= cut <= length:
        return None
    wanted = target.reshape(count, cut) if along else target.reshape(cut, count).t()
    # What is the most frequent may be padding, which is the same wherever it is looked for.
    common = wanted[wanted != ignored].mode().values if bool((wanted != ignored).any()) else ignored
    counts = (wanted != ignored) & (wanted != common)
    if len(set(wanted[counts].tolist())) < VARIED:
        return None
    shares = []
    for offset in OFFSETS:
        width = min(cut, length - offset)
        valid = counts[:, :width]
        same = (wanted[:, :width] == rows[:, offset : offset + width]) & valid
        shares.append(int(same.sum()) / max(int(valid.sum()), 1))
    best = max(OFFSETS, key=shares.__getitem__)
    is_alone = all(one < CHANCE for offset, one in enumerate(shares) if offset != best)
    is_it = shares[best] > SURE and is_alone
    return (best, _Targets(length, (wanted != ignored).float().sum(0))) if is_it else None


def _sees_next(call: TorchCall) -> _Seeing | None:
    """Of how many positions nearly all see the one after them, if any do."""
    if call.function in ("lstm", "gru") and type(call.args[-1]) is bool and len(call.args) == 9:
        axis = 1 if call.args[8] else 0
        is_both = call.args[7] and call.args[0].dim() == 3
        return _Seeing(call.args[0].shape[axis], is_recurrent=True) if is_both else None
    found = attention_of(call)
    if found is None or found.queries != found.keys:
        return None
    if found.seen is None:
        return _Seeing(found.keys)
    if found.seen.shape[-2] == 1:  # the same for all positions
        return _Seeing(found.keys) if float(found.seen.float().mean()) > CHANCE else None
    if not is_small(found.seen, LARGEST * 10) or found.seen.shape[-1] != found.keys:
        return None
    after = found.seen.diagonal(1, -2, -1).float().reshape(-1, found.keys - 1).mean(0)
    return _Seeing(found.keys, after) if float(after.mean()) > CHANCE else None
