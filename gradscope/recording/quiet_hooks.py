"""Global hooks on modules of which torch.compile does not warn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.nn.modules import module as module_hooks

_quiet: set[int] = set()
_has_hooks: Callable[[], bool] | None = getattr(module_hooks, "_has_any_global_hook", None)


def quiet(handles: list[Any]) -> None:
    """Have no warning that these hooks run twice, which ours let pass, until :func:`remove`."""
    _quiet.update(handle.id for handle in handles)
    if _has_hooks is not None:  # older versions of torch have it not
        module_hooks._has_any_global_hook = _has_other_hooks


def remove(handles: list[Any]) -> None:
    """Remove what was made quiet."""
    for handle in handles:
        handle.remove()
        _quiet.discard(handle.id)
    handles.clear()
    if _has_hooks is not None and not _quiet:
        module_hooks._has_any_global_hook = _has_hooks


def _has_other_hooks() -> bool:
    kinds = ("backward_pre", "backward", "forward_pre", "forward")
    tables = (getattr(module_hooks, f"_global_{kind}_hooks") for kind in kinds)
    return any(key not in _quiet for table in tables for key in table)
