"""Gradients pulled back through nodes by calling them one by one, without torch's engine.

A live node is its derivative: called with upstream gradients it returns what it sends on, and keeps
what it saved.  No hook of the program runs and no ``.grad`` is touched, so this may be done as
often as an explanation needs it.  Nodes whose call could change the program are refused; what a
custom backward changes by way of others is put back.
"""

from __future__ import annotations

import contextlib
import dis
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, TypeVar

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd import saved
from gradscope.autograd.elements import MemoryLeftAlone, why_unreadable
from gradscope.autograd.isolation import functions_off, others_compute, own_pass
from gradscope.autograd.nodes import Walked, is_leaf, op_name, outputs_of, torch_name
from gradscope.derivatives.rerun import (
    inner,
    is_kept,
    moves_iterator,
    program_runs,
    state_put_back,
)
from gradscope.escaping import message
from gradscope.graphing.probe import Probe
from gradscope.graphing.study import LiveGraph
from gradscope.graphing.watched_call import fits, initial
from gradscope.handlers import let_pass
from gradscope.model.report import is_opaque
from gradscope.words import first_line, short_op

Gradient = torch.Tensor | None

Place = tuple[int, int]
"""A node and one of its outputs."""

Start = tuple[Place, torch.Tensor]
"""Where backward starts, and with which gradient."""

_WRITES = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "DELETE_ATTR"}
_CHANGES = {"append", "extend", "insert", "pop", "update", "setdefault", "write", "put"}
"""What code does, or calls, that something outside of it would notice: what it gives may depend on
how often it was called."""


class CannotCall(Exception):
    """A node cannot be called on its own; the text says why, and of which node."""


Key = TypeVar("Key")


def add(found: dict[Key, torch.Tensor], key: Key, gradient: torch.Tensor) -> None:
    """Add a gradient to what is there already; into a tensor of its own, for others may have it."""
    known = found.get(key)
    found[key] = gradient if known is None else known + gradient


def given(live: LiveGraph) -> list[Start] | None:
    """What backward starts with at each root, which may be the same tensor twice; None where torch
    would refuse.

    Raises:
        CannotCall: when such a gradient has no numbers.
    """
    if not all(map(fits, live.roots, live.gradients)):
        return None
    starts = []
    seeds = map(initial, live.roots, live.gradients)
    for root, one in zip(live.probe.graph.roots, seeds, strict=True):
        if one is None:
            return None
        check_numbers(one)
        starts.append(((root.node, root.output), one.detach()))
    return starts


class Puller:
    """Calls the nodes of one walked graph.

    Args:
        probe: has the graph.
        within: the edges that gradients are sent along, if not all.
    """

    def __init__(self, probe: Probe, within: Collection[int] | None = None) -> None:
        self.walked = probe.walked
        self.leaving: list[list[int]] = [[] for _ in self.walked.nodes]
        self._reached = {(root.node, root.output) for root in probe.graph.roots}
        for number, (source, _, target, output) in enumerate(self.walked.edges):
            self._reached.add((target, output))
            if within is None or number in within:
                self.leaving[source].append(number)
        self._refusals: dict[int, str] = {}
        self._released = saved.ReleasedMemory()

    def call(
        self, number: int, gradients: Mapping[int, torch.Tensor], *, is_fitted: bool = True
    ) -> dict[int, torch.Tensor]:
        """What a node sends along each of its edges for the gradients at its outputs.

        Args:
            number: the node's position.
            gradients: for its outputs, by number, in the shape and dtype of each; others are
                undefined.
            is_fitted: give them as they arrive; else as they are sent, not summed over broadcast
                dimensions yet.

        Returns:
            For each edge that a gradient is sent along, that gradient.

        Raises:
            CannotCall: saying why.
        """
        node = self.walked.nodes[number]
        reason = self._refusal(number)
        if reason:
            raise CannotCall(reason)
        try:
            sent = _run(node, self._arranged(number, gradients))
            return {
                edge: _fitted(
                    sent[self.walked.edges[edge][1]], self.target(edge) if is_fitted else None
                )
                for edge in self.leaving[number]
                if sent[self.walked.edges[edge][1]] is not None
            }
        except CannotCall:
            raise
        except Exception as error:
            let_pass(error)
            # Torch's messages go on with advice that is not for somebody who only looks.
            said = first_line(message(error)).partition(". ")[0].rstrip(".")
            text = f"{_called(node)} failed with {type(error).__name__}: {said}"
            raise CannotCall(text) from error

    def shape(self, number: int, output: int) -> Any:
        """Shape, dtype and device of the gradient that a node takes for an output; None where torch
        does not say."""
        node: Any = self.walked.nodes[number]
        if is_leaf(node):
            return node.variable
        described = outputs_of(node)
        return described[output] if output < len(described) else None

    def target(self, edge: int) -> Any:
        """As :meth:`shape`, of the gradient that flows along an edge."""
        _, _, target, output = self.walked.edges[edge]
        return self.shape(target, output)

    def _arranged(self, number: int, gradients: Mapping[int, torch.Tensor]) -> list[Gradient]:
        """The arguments of the call: zeros for an output that backward brings a gradient to, but
        that gets none now.

        Torch's own nodes may compute with another formula, and another result, where a gradient is
        undefined, as that of group_norm does; so what is defined here is what is defined in
        backward. A custom Function gets zeros for all others, as torch makes them.
        """
        node = self.walked.nodes[number]
        described = outputs_of(node)
        size = max(len(described), max(gradients, default=0) + 1)
        given: list[Gradient] = [gradients.get(output) for output in range(size)]
        is_custom = isinstance(node, BackwardCFunction)
        for output, like in enumerate(described):
            one = given[output]
            if one is None and (is_custom or (number, output) in self._reached):
                given[output] = torch.zeros(tuple(like.shape), dtype=like.dtype, device=like.device)
            elif one is not None and is_custom:
                given[output] = one.clone()  # a function of the program may overwrite it
        return given

    def _refusal(self, number: int) -> str:
        if number not in self._refusals:
            self._refusals[number] = _refusal(self.walked.nodes[number], self._released)
        return self._refusals[number]


def _called(node: LiveNode) -> str:
    """A node in a sentence, as the table of steps calls it."""
    name = op_name(node)
    return name if isinstance(node, BackwardCFunction) else short_op(name)


def _refusal(node: LiveNode, released: saved.ReleasedMemory) -> str:
    """Why a node must not be called, or ""."""
    name = _called(node)
    if is_opaque(torch_name(node)):
        return f"{name} hides operations, and running it again would run them again"
    if saved.is_packed(node):
        return (
            f"what {name} saved was packed by saved_tensors_hooks (as checkpoint does), and "
            "unpacking it would run that code again"
        )
    reason = released.refusal(node)
    if reason:
        return reason
    if isinstance(node, BackwardCFunction):
        code = backward_code(node)
        is_fit = code is not None and not _is_noticed(code) and saved.keeps_only_data(node)
        if not is_fit or moves_iterator(_function_of(node)) or not is_kept():
            return f"running the backward of {name} once more could change the program"
    return ""


@contextlib.contextmanager
def nodes_called(walked: Walked) -> Iterator[None]:
    """Nodes of a graph are called in the block, and the program finds nothing changed by it; none
    of custom Functions beside other threads of the program, which may use what these change."""
    beside = others_compute()
    custom = [one for one in walked.nodes if isinstance(one, BackwardCFunction) and not beside]
    functions = {one for one in map(_function_of, custom) if one is not None}
    with functions_off(), state_put_back(functions, custom):
        yield


def _function_of(node: Any) -> Any:
    return getattr(node, "_forward_cls", None)


def backward_code(node: Any) -> CodeType | None:
    """The code of a custom Function's own backward; None where it is not python."""
    method = getattr(_function_of(node), "backward", None)
    if getattr(method, "__func__", method) is torch.autograd.Function.backward:
        method = getattr(_function_of(node), "vjp", None)  # it may be written under this name, too
    return getattr(inner(method), "__code__", None)


def _is_noticed(code: CodeType) -> bool:
    written = any(step.opname in _WRITES for step in dis.get_instructions(code))
    return written or bool(_CHANGES & set(code.co_names))


def _run(node: Any, gradients: Sequence[Gradient]) -> Sequence[Gradient]:
    with torch.no_grad():
        if not isinstance(node, BackwardCFunction):
            sent = node(*gradients)
        else:
            # A custom backward may print; that belongs to the program's own pass.
            apply: Any = node.apply
            unseen = contextlib.redirect_stdout(io.StringIO())
            with unseen, own_pass(), MemoryLeftAlone(), program_runs():
                sent = apply(*gradients)
    sent = sent if isinstance(sent, tuple) else (sent,)
    return _by_edge(node, sent) if isinstance(node, BackwardCFunction) else sent


def _by_edge(node: Any, sent: tuple[Gradient, ...]) -> Sequence[Gradient]:
    """What a custom backward returned, for each of the node's edges: it returns one gradient for
    every argument of its forward, and edges there are for tensors alone."""
    needed = [at for at, is_needed in enumerate(node.needs_input_grad) if is_needed]
    functions = [function for function, _ in node.next_functions]
    if len(needed) != sum(function is not None for function in functions):
        return sent
    arguments = iter(needed)
    return [None if function is None else sent[next(arguments)] for function in functions]


def _fitted(gradient: Any, like: Any) -> torch.Tensor:
    """A gradient as the engine delivers it: summed over broadcast dimensions, in the operand's
    dtype; dense."""
    if gradient.layout is torch.sparse_coo:
        gradient = gradient.to_dense()
    elif gradient.layout is torch.strided and gradient._is_zerotensor():
        gradient = gradient.clone()  # zeros that are written out
    check_numbers(gradient)
    if like is None:
        return gradient  # type: ignore[no-any-return]
    shape = tuple(like.shape)
    if tuple(gradient.shape) != shape:
        gradient = gradient.sum_to_size(shape)
    return gradient.to(like.dtype)  # type: ignore[no-any-return]


def check_numbers(gradient: torch.Tensor) -> None:
    """Refuse a gradient that has no numbers to follow, or that a class of the program computes.

    Raises:
        CannotCall: always then.
    """
    why = why_unreadable(gradient)
    if why:
        raise CannotCall(f"a gradient on the way cannot be read: {why}")
