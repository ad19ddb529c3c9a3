"""Warnings keep the place where plain python would report them.

While a recorder is active its frames stand between the program and torch, so a warning that torch
issues would name our file, and python would show it once instead of once a place.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import torch

_OURS = str(Path(__file__).parent) + "/"
_DETOUR = str(Path(torch.overrides.__file__))
_HOOK = "_showwarnmsg"
"""What python calls with every warning that passed the filters.  The documented ``showwarning`` is
below it, and ``catch_warnings(record=True)`` goes around that one."""


class WarningPlaces:
    """Stands in the way of warnings between :meth:`start` and :meth:`stop`."""

    def __init__(self) -> None:
        self._original: Any = None

    def start(self) -> None:
        """Begin to correct the places of warnings."""
        self._original = getattr(warnings, _HOOK, None)
        if self._original is not None:
            setattr(warnings, _HOOK, self._show)

    def stop(self) -> None:
        """Put the original back."""
        if self._original is not None:
            setattr(warnings, _HOOK, self._original)

    def _show(self, message: Any) -> None:
        frame = _program_frame(message.filename) if _is_between(message.filename) else None
        if frame is None:
            self._original(message)
            return
        # Filters and "once a place" apply again, now with the right place.
        for module in list(sys.modules.values()):
            if getattr(module, "__file__", None) == message.filename:
                vars(module).get("__warningregistry__", {}).clear()
        warnings.warn_explicit(
            message.message,
            message.category,
            frame.f_code.co_filename,
            frame.f_lineno,
            module=frame.f_globals.get("__name__"),
            registry=frame.f_globals.setdefault("__warningregistry__", {}),
            source=message.source,  # which tracemalloc uses to tell where it was allocated
        )


def _is_between(filename: str) -> bool:
    return filename.startswith(_OURS) or filename == _DETOUR


def _program_frame(filename: str) -> FrameType | None:
    """The frame that plain python would have named instead of the one of ours in ``filename``."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != filename:
        frame = frame.f_back
    while frame is not None and _is_between(frame.f_code.co_filename):
        detour = frame.f_code.co_filename == _DETOUR
        frame = frame.f_back
        if detour and frame is not None:
            frame = frame.f_back  # the first, interrupted entry of the torch function itself
    return frame
