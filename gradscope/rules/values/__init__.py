"""Numbers that are not finite, or that a dtype cannot hold."""

from __future__ import annotations

from gradscope.model.plain import GradientInfo, TensorInfo
from gradscope.rules.facts import Facts

_HALF = ("float16", "bfloat16")


def concerns(facts: Facts) -> bool:
    """Whether a number was not finite, or a tensor in half precision."""
    seen, graph = facts.seen, facts.graph
    gradients = facts.backward.gradients if facts.backward else ()
    results = (out for node in graph.nodes for out in node.outputs if out is not None)
    return bool(
        isinstance(facts.loss, str)
        or seen.intakes
        or seen.spoiling_steps
        or any(map(_is_odd, gradients))
        or any(map(_holds_odd, results))
        or any(_holds_odd(leaf.tensor) for leaf in graph.leaves)
    )


def _is_odd(gradient: GradientInfo) -> bool:
    return gradient.state == "non-finite" or gradient.dtype in _HALF


def _holds_odd(tensor: TensorInfo) -> bool:
    return bool(tensor.nan or tensor.inf) or tensor.dtype in _HALF
