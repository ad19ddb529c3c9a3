"""Calls of modules, heard without hooks: where there is any global one, torch goes a longer way
around every call, which takes several times as long.

Knows nothing of what is remembered of a call.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from torch import nn

Original = Callable[..., Any]
"""What torch itself does in a call of a module."""

_COMPILERS = "unpatched_nn_module_call_impl"


class ModuleCalls:
    """While it is started, what it is given stands in the place of torch's own function.

    Args:
        around: makes it of torch's.
    """

    def __init__(self, around: Callable[[Original], Original]) -> None:
        self._around = around
        self._original: Original | None = None
        self._ours: Original | None = None

    @property
    def is_started(self) -> bool:
        """Whether it hears of them."""
        return self._ours is not None

    def start(self) -> None:
        """Hear of all calls from now on."""
        original = self._original = nn.Module._call_impl
        self._ours = functools.wraps(original)(self._around(original))
        setattr(nn.Module, "_call_impl", self._ours)  # noqa: B010

    def stop(self) -> None:
        """Put torch's function back; where the program has put another around ours, that stays."""
        if self._ours is not None:
            for owner, name in (
                (nn.Module, "_call_impl"),
                # The compiler takes what it finds when it is imported for torch's own.
                (sys.modules.get("torch._dynamo.utils"), _COMPILERS),
                (sys.modules.get("torch._dynamo.variables.nn_module"), _COMPILERS),
            ):
                if getattr(owner, name, None) is self._ours:
                    setattr(owner, name, self._original)
        self._ours = self._original = None
