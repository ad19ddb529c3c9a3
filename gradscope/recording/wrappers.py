"""Modules that torch puts around a model, and that are no part of it: names leave them out.

Knows how torch's own wrappers hold what they wrap, and where FSDP2 keeps the whole parameters that
forward uses in place of the shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

_INNER = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
"""What DistributedDataParallel and DataParallel, torch.compile, FSDP and checkpoint_wrapper call
what they wrap."""


def plain_path(module: nn.Module, path: str) -> str:
    """A path below a module, of a part or a parameter, as it would be without wrappers."""
    if not any(inner in path for inner in _INNER):
        return path
    owner: Any = module
    parts = []
    for part in path.split("."):
        is_torchs = type(owner).__module__.startswith("torch.")
        if not (is_torchs and part in _INNER):
            parts.append(part)
        # Not asked by attribute, which may be the program's own code.
        inside = vars(owner).get("_modules", {}) if isinstance(owner, nn.Module) else {}
        owner = inside.get(part)
    return ".".join(parts)


def unsharded_parameters(module: nn.Module) -> Iterator[tuple[nn.Module, str, torch.Tensor]]:
    """The owner, the name and the whole tensor of each parameter that FSDP2 has gathered here."""
    try:
        # Private, and the only way to them; where it is gone, these leaves have no names.
        group = module._get_fsdp_state()._fsdp_param_group  # type: ignore[operator]
        for parameter in group.fsdp_params if group is not None else ():
            tensor = getattr(parameter, "_unsharded_param", None)
            if isinstance(tensor, torch.Tensor):
                info = parameter._module_info
                yield info.module, info.param_name, tensor
    except AttributeError:
        return
