"""Nodes of torch's own that stand for a whole graph: what they are, and how to see inside."""

from __future__ import annotations

from gradscope.words import either

COMPILED = "CompiledFunction"
"""What torch.compile makes."""

_SCRIPTED = "run with PYTORCH_JIT=0 in the environment"
_STANCE = 'torch.compiler.set_stance("force_eager")'
_INSIDE = {
    COMPILED: f"run with {_STANCE}",
    "CheckpointFunction": "give checkpoint use_reentrant=False",
    "DifferentiableGraph": _SCRIPTED,
    "ScriptFunction": _SCRIPTED,
}
"""Parts of their names, and what makes their operations nodes of the graph."""


def is_opaque(name: str) -> bool:
    """Whether a node with torch's name for it hides operations."""
    return any(part in name for part in _INSIDE)


def way_inside(name: str) -> str:
    """What to do to see the operations behind such a node: ``run with --eager (…)``."""
    if COMPILED in name:
        return either(f"run with --eager ({_STANCE})", _INSIDE[COMPILED])
    return next(way for part, way in _INSIDE.items() if part in name)
