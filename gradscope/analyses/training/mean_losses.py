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

NEAR = 1e-6
"""A divisor that is a float is a number of elements up to this."""


def is_mean(root: LiveNode) -> bool:
    """Whether a loss is a mean, and nothing has divided or weighed it since."""
    name = torch_name(root)
    if name.startswith(("Div", "Mul")):
        factor = _number(saved.value(root, "other"))
        below = root.next_functions[0][0]
        if factor is None or not factor or below is None:
            return False
        divisor = factor if name.startswith("Div") else 1.0 / factor
        if abs(divisor - 1.0) <= NEAR:
            return is_mean(below)
        return any(abs(divisor / count - 1.0) <= NEAR for count in _summed(below) if count > 1)
    return name.startswith("Mean") or getattr(root, "_saved_reduction", 0) == _MEAN


def _number(factor: torch.Tensor | None) -> float | None:
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
