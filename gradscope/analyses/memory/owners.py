"""Who owns a storage besides autograd: a parameter, a buffer, or a variable of the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from gradscope.autograd.tensors import dense_parts, has_storage, key_of, requires_grad
from gradscope.graphing.study import LiveGraph
from gradscope.model.memory import Holding
from gradscope.recording.names import ModuleNames


def owners(live: LiveGraph) -> dict[int, tuple[Holding, str]]:
    """For every storage that would be there without autograd: what it is, and its name."""
    found: dict[int, tuple[Holding, str]] = {}
    for holding, name, tensor in _owned(live):
        for part in dense_parts(tensor)[0]:
            # The first name is the one that counts: a variable may hold a parameter's memory, too.
            found.setdefault(key_of(part.untyped_storage()), (holding, name))
    return found


def leaf_tensors(live: LiveGraph) -> Iterator[tuple[int, torch.Tensor]]:
    """The tensors of the graph's leaves with their positions, those with memory of their own."""
    for position, leaf in enumerate(live.probe.graph.leaves):
        node: Any = live.probe.walked.nodes[leaf.node]
        if node.variable is not None and has_storage(node.variable):
            yield position, node.variable


def _owned(live: LiveGraph) -> Iterator[tuple[Holding, str, torch.Tensor]]:
    graph, nodes = live.probe.graph, live.probe.walked.nodes
    for leaf in graph.leaves:
        node: Any = nodes[leaf.node]
        if node.variable is not None:
            yield "parameter", next(iter(leaf.names), ""), node.variable
    for prefix, module in ModuleNames(live.scopes, live.recorder.modules).owners:
        # The methods of nn.Module: those of a subclass are code of the program.
        for name, parameter in nn.Module.named_parameters(module, prefix):
            yield "parameter", name, parameter
        for name, buffer in nn.Module.named_buffers(module, prefix):
            yield "buffer", name, buffer
    for tensor in live.scopes.held_tensors():
        if not requires_grad(tensor):
            yield "input", live.scopes.names(tensor)[0], tensor
