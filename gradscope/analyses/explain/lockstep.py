"""Pieces of a gradient on their way through a graph, all in step, node by node."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

import torch

from gradscope import doing
from gradscope.analyses.explain.pull import CannotCall, Place, Puller, Start, add, nodes_called
from gradscope.autograd.nodes import Walked, is_leaf
from gradscope.errors import CaptureError
from gradscope.model.explanation import End
from gradscope.words import count

WHOLE = -1
"""The number of the piece that nothing has been taken from yet; what arrives with it at a leaf
went through none of the tensors where the gradient is taken apart."""

AT_ONCE = 16
"""Pieces that are followed at once, however large their gradients are."""

PART = 65_536
"""Elements of each piece that are compared at once."""

Carried = dict[int, torch.Tensor]
"""What arrives at one place, by the number of the piece."""


def whole(starts: Iterable[Start]) -> dict[Place, Carried]:
    """All that backward starts with, as one piece."""
    found: dict[Place, Carried] = {}
    for place, gradient in starts:
        add(found.setdefault(place, {}), WHOLE, gradient)
    return found


@contextlib.contextmanager
def sent_alone(walked: Walked, what: str, instead: str) -> Iterator[None]:
    """Send gradients through a graph meanwhile.

    Raises:
        CaptureError: a node on the way cannot be called, so that no ``what`` can be sent alone;
            ``instead`` is what to do.
    """
    with nodes_called(walked):
        try:
            yield
        except CannotCall as error:
            raise CaptureError(f"no {what} can be sent alone: {error}", instead) from None


class Lockstep:
    """Sends pieces through a graph.

    Args:
        puller: calls the nodes.
        seeds: the pieces that backward starts with.
        cut: what :data:`WHOLE` is taken apart into, by number, at a place where it is.
        at: a node on the way at which they end, too.

    ``passed`` is told of each call: its node, what went in and what came out, by edge.
    """

    def __init__(
        self,
        puller: Puller,
        seeds: Mapping[Place, Carried],
        cut: Callable[[Place, torch.Tensor], Carried] = lambda _, gradient: {WHOLE: gradient},
        at: int | None = None,
    ) -> None:
        self._puller = puller
        self._at = at
        self._cut = cut
        self._waiting: dict[int, dict[int, Carried]] = defaultdict(dict)
        for (node, output), pieces in seeds.items():
            self._waiting[node][output] = {**pieces}
        self.passed: Callable[[int, Mapping[int, Carried], Mapping[int, Carried]], None] | None
        self.passed = None

    def run(self, words: str) -> Iterator[tuple[int, Mapping[int, Carried]]]:
        """Each node with what arrives there, by output; ``words`` say what is done meanwhile.

        Raises:
            CannotCall: at the first node that cannot be called.
        """
        nodes = self._puller.walked.nodes
        for number, node in enumerate(nodes):
            arrived = self._arrived(number)
            if not arrived:
                continue
            yield number, arrived
            if is_leaf(node) or number == self._at:
                continue
            doing.begin(f"{words}, node {number + 1:,} of {count(len(nodes), 'node')}")
            self._pass_on(number, arrived)

    def _arrived(self, number: int) -> dict[int, Carried]:
        """What arrives at each output of a node, taken apart where it is to be."""
        found = self._waiting.pop(number, {})
        for output, carried in found.items():
            if WHOLE in carried:
                for piece, gradient in self._cut((number, output), carried.pop(WHOLE)).items():
                    add(carried, piece, gradient)
        return {output: carried for output, carried in sorted(found.items()) if carried}

    def _pass_on(self, number: int, arrived: Mapping[int, Carried]) -> None:
        """Call a node, and hand on what it sends."""
        before = {} if self.passed is None else {at: {**one} for at, one in arrived.items()}
        sent = self._sent(number, arrived)
        if self.passed is not None:
            self.passed(number, before, sent)
        for edge, carried in sent.items():
            _, _, target, output = self._puller.walked.edges[edge]
            self._add(self._waiting[target].setdefault(output, {}), carried)

    def _sent(self, number: int, arrived: Mapping[int, Carried]) -> dict[int, Carried]:
        """What a node sends of every piece, by edge."""
        sent: dict[int, Carried] = defaultdict(dict)
        for piece in sorted({piece for carried in arrived.values() for piece in carried}):
            # What has been passed on goes: of many pieces the gradients are what is large.
            given = {at: one.pop(piece) for at, one in arrived.items() if piece in one}
            for edge, gradient in self._puller.call(number, given).items():
                sent[edge][piece] = gradient
        return sent

    @staticmethod
    def _add(known: Carried, carried: Carried) -> None:
        for piece, gradient in carried.items():
            add(known, piece, gradient)


def brought(
    puller: Puller, seeds: Mapping[Place, Carried], ends: Iterable[End]
) -> defaultdict[int, Carried]:
    """What pieces bring to tensors, by their nodes: to leaves, or to one other.

    Raises:
        CannotCall: at the first node on the way that cannot be called.
    """
    found: defaultdict[int, Carried] = defaultdict(dict)
    outputs = {end.node: end.output for end in ends}
    made = (node for node in outputs if not is_leaf(puller.walked.nodes[node]))
    met = Lockstep(puller, seeds, at=next(made, None)).run("following the chain rule")
    for node, arrived in met:
        if node in outputs:
            found[node] |= arrived.get(outputs[node], {})
    return found


def products(gradients: list[torch.Tensor]) -> torch.Tensor:
    """The inner product of each two of them, real parts only, in float64 a part at a time."""
    parts = [
        torch.view_as_real(one.resolve_conj()) if one.is_complex() else one for one in gradients
    ]
    rows = [one.reshape(-1) for one in parts]
    kind = torch.float32 if rows[0].device.type == "mps" else torch.float64
    total = torch.zeros(len(rows), len(rows), dtype=kind, device=rows[0].device)
    for start in range(0, rows[0].numel(), PART):
        part = torch.stack([row[start : start + PART].to(kind) for row in rows])
        total += part @ part.T
    return total
