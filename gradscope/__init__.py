"""gradscope: see where the gradients of a PyTorch program go.

    >>> import gradscope                                  # doctest: +SKIP
    >>> gradscope.backward(loss).show()                   # doctest: +SKIP

The command line is ``gradscope trace script.py``; this package is the same from inside a program.
Importing it does not import torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradscope.words import VERSION

__version__ = VERSION

__all__ = [
    "Difference",
    "Finding",
    "GradscopeError",
    "LeafGradient",
    "ModuleRow",
    "Report",
    "Row",
    "Run",
    "backward",
    "check",
    "depends",
    "diff",
    "doctor",
    "explain",
    "load",
    "memory",
    "record",
    "trace",
    "watch",
]

if TYPE_CHECKING:
    from gradscope.api import (
        Difference,
        Finding,
        LeafGradient,
        ModuleRow,
        Report,
        Row,
        Run,
        backward,
        check,
        depends,
        diff,
        doctor,
        explain,
        load,
        memory,
        record,
        trace,
        watch,
    )
    from gradscope.errors import GradscopeError


def __getattr__(name: str) -> Any:
    # Loaded on first use: `gradscope --help` needs neither the Report nor a renderer.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gradscope import api, errors

    value = getattr(errors if name == "GradscopeError" else api, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *(name for name in __all__ if name not in globals())]


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext gradscope`` calls."""
    from gradscope.ipython import load

    load(shell)
