"""Whether a loss is the mean of what it was computed of, told by the last nodes of its graph.

A sum is a mean where it is divided by what was summed, all of it or its first dimensions; divided
by anything else, as by the size of several batches, it is a part of their mean.
"""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd import saved
from gradscope.autograd.elements import readable
from gradscope.autograd.nodes import torch_name

_REDUCED = ("NllLoss", "MseLoss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy", "SoftMargin")

_MEAN, _SUM = 1, 2
"""How torch counts reductions."""

MOST_FACTORS = 100
"""Factors of 1 that are gone past."""

NEAR = 1e-6
"""A divisor that is a float is a number of elements up to this."""


def is_mean(root: LiveNode) -> bool:
    """Whether a loss is a mean, and nothing has divided or weighed it since."""
    node: LiveNode | None = root
    for _ in range(MOST_FACTORS):
        if node is None or not torch_name(node).startswith(("Div", "Mul")):
            break
        factor = number_in(saved.value(node, "other"))
        if factor is None or not factor:
            return False
        divisor = factor if torch_name(node).startswith("Div") else 1.0 / factor
        node = node.next_functions[0][0]
        if abs(divisor - 1.0) > NEAR:
            counts = () if node is None else _summed(node)
            return any(abs(divisor / count - 1.0) <= NEAR for count in counts if count > 1)
    if node is None:
        return False
    return torch_name(node).startswith("Mean") or getattr(node, "_saved_reduction", 0) == _MEAN


def number_in(factor: torch.Tensor | None) -> float | None:
    """The one number of a tensor that nobody has to wait for."""
    # One on another device would have to be waited for.
    is_known = factor is not None and factor.numel() == 1 and factor.device.type == "cpu"
    return float(factor) if factor is not None and is_known and readable(factor) else None


def _summed(node: LiveNode) -> set[int]:
    """How many elements a node has summed: all, and along its first dimensions."""
    name = torch_name(node)
    shape: Any = ()
    if name.startswith("Sum"):
        shape = getattr(node, "_saved_self_sym_sizes", ())
    elif name.startswith(_REDUCED) and getattr(node, "_saved_reduction", 0) == _SUM:
        values = saved.value(node, "target" if name.startswith("Nll") else "self")
        shape = () if values is None else values.shape
    return {*itertools.accumulate(map(int, shape), operator.mul), math.prod(map(int, shape))}
