"""Modules that torch puts around a model, and that are no part of it: names leave them out.

Knows how torch's own wrappers hold what they wrap, and where FSDP2 keeps the whole parameters that
forward uses in place of the shards.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn

from gradscope.handlers import let_pass

_WRAPPERS = {
    "module": ("DistributedDataParallel", "DataParallel"),
    "_orig_mod": ("OptimizedModule",),
    "_fsdp_wrapped_module": ("FullyShardedDataParallel",),
    "_checkpoint_wrapped_module": ("ActivationWrapper",),
}
"""What torch's wrappers call what they wrap, and the classes that do."""

_WRAPPED = re.compile("|".join(_WRAPPERS))


def plain_path(module: nn.Module, path: str) -> str:
    """A path below a module, of a part or a parameter, as it would be without wrappers."""
    if _WRAPPED.search(path) is None:  # nearly all
        return path
    owner: Any = module
    parts = []
    for part in path.split("."):
        if not _is_wrapper(type(owner), part):
            parts.append(part)
        # Not asked by attribute, which may be the program's own code.
        inside = vars(owner).get("_modules", {}) if isinstance(owner, nn.Module) else {}
        owner = inside.get(part)
    return ".".join(parts)


def _is_wrapper(owner: type, part: str) -> bool:
    # Asked of the bases as well: fully_shard makes a class of its own of every class.
    return any(
        base.__name__ in _WRAPPERS.get(part, ()) and base.__module__.startswith("torch.")
        for base in owner.__mro__
    )


MAX_PARTS = 20_000
"""Parts of a module above which each is named once."""


def parts_of(module: nn.Module, each_once: bool = True) -> list[tuple[str, nn.Module]]:
    """A module and all below it with their paths, the outer first; else each as often as it is
    registered, as long as modules do not hold one another, and there are not too many ways."""
    parts: list[tuple[str, nn.Module]] = []
    met: set[int] = set()
    pending: list[tuple[str, nn.Module, frozenset[int]]] = [("", module, frozenset())]
    while pending:
        path, part, around = pending.pop()
        if each_once and id(part) in met:
            continue
        if not each_once and (id(part) in around or len(parts) >= MAX_PARTS):
            return parts_of(module)
        met.add(id(part))
        told = None if part is module else _told_parts(part, path)
        if told is not None:
            parts += [one for one in told if not each_once or id(one[1]) not in met]
            met.update(id(one) for _, one in told)
            continue
        parts.append((path, part))
        around |= {id(part)} if not each_once else frozenset()
        # Not asked by attribute, nor by `nn.Module.modules`, which asks every part: these may be
        # the program's own code.
        children = vars(part).get("_modules", {}).items()
        below = [(joined(path, name), one, around) for name, one in children if one is not None]
        pending += reversed(below)
    return parts


def _told_parts(part: nn.Module, path: str) -> list[tuple[str, nn.Module]] | None:
    """What a module of a class with a ``named_modules`` of its own tells of, as of parts of others
    that it stands for; None of any other, and where that fails."""
    if type(part).named_modules is nn.Module.named_modules:
        return None
    try:
        return list(part.named_modules(set(), path))
    except Exception as error:
        let_pass(error)
        return None


def joined(before: str, path: str) -> str:
    """A path below another one; either may be empty."""
    return f"{before}.{path}" if before and path else before or path


def parameters_in(module: nn.Module) -> Iterator[nn.Parameter]:
    """The parameters in a module and below, by no code of the program's.

    ``nn.Module.parameters`` would ask the ``named_parameters`` of the class, which FSDP has, and
    which fails in a wrapper that is half made.
    """
    return (parameter for _, parameter in named_parameters_in(module))


def named_parameters_in(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The same with their names, each under the first."""
    met: set[int] = set()
    for path, part in parts_of(module):
        for name, one in vars(part).get("_parameters", {}).items():
            if one is not None and id(one) not in met:
                met.add(id(one))
                yield joined(path, name), one


def puts_gradients_together(module: nn.Module) -> bool:
    """Whether torch itself adds up the gradients of several ranks in some part of a module."""
    return any(
        type(part).__module__ == "torch.nn.parallel.distributed"
        or hasattr(type(part), "_get_fsdp_state")
        or "_fsdp_wrapped_module" in vars(part).get("_modules", {})
        for _, part in parts_of(module)
    )


class ShardedParameter(NamedTuple):
    """A parameter of FSDP2: the module that owns it, its name there, the whole tensor that forward
    uses, and the shard that stays on this rank."""

    owner: nn.Module
    name: str
    whole: torch.Tensor
    shard: torch.Tensor


def sharded_parameters(module: nn.Module) -> Iterator[ShardedParameter]:
    """The parameters that FSDP2 gathers when this very module is called."""
    if not hasattr(type(module), "_get_fsdp_state"):
        return
    try:
        # Private, and the only way to them; where it is gone, these leaves have no names.
        state: Any = module._get_fsdp_state()  # type: ignore[operator]
        groups = getattr(state, "_fsdp_param_groups", None)
        groups = [state._fsdp_param_group] if groups is None else groups
        for parameter in (
            one for group in groups if group is not None for one in group.fsdp_params
        ):
            whole = getattr(parameter, "_unsharded_param", None)
            if isinstance(whole, torch.Tensor):
                info = parameter._module_info
                shard = parameter.sharded_param
                yield ShardedParameter(info.module, info.param_name, whole, shard)
    except AttributeError:
        return


def shards(modules: Iterable[nn.Module | None]) -> dict[int, torch.Tensor]:
    """What stays on this rank of each parameter of FSDP2, by the ``id`` of the whole tensor."""
    if "torch.distributed.fsdp" not in sys.modules:
        return {}
    every = (part for module in modules if module is not None for _, part in parts_of(module))
    return {id(one.whole): one.shard for part in every for one in sharded_parameters(part)}


def copies(tensor: torch.Tensor | None) -> int:
    """How many ranks hold each part of a tensor that is spread over ranks; 0 where it is not."""
    if getattr(tensor, "_is_flat_param", False):
        return _copies_of_flat(tensor)
    placements = getattr(tensor, "placements", None)
    mesh = getattr(tensor, "device_mesh", None)
    if mesh is None or not placements or all(one.is_replicate() for one in placements):
        return 0
    sizes = zip(mesh.shape, placements, strict=True)
    return math.prod(size for size, placement in sizes if placement.is_replicate())


def _copies_of_flat(flat: Any) -> int:
    # FSDP1 puts the parameters of a module in a row, of which each rank keeps a stretch.
    parts = math.ceil(flat._unpadded_unsharded_size.numel() / flat._sharded_size.numel())
    if parts == 1:
        return 0
    distributed = torch.distributed
    # The group may be gone when the program has ended; then nothing is added up any more.
    return distributed.get_world_size() // parts if distributed.is_initialized() else 1


def in_flat_shards(modules: Iterable[nn.Module]) -> set[int]:
    """The ``id`` of each parameter of FSDP1 of which this rank keeps a stretch, or nothing."""
    every = (part for module in modules for _, part in parts_of(module))
    handles: Iterable[Any] = (vars(part).get("_handle") for part in every)
    flat = [one.flat_param for one in handles if getattr(one, "uses_sharded_strategy", False)]
    return {id(one) for each in flat for one in (each, *(each._params or ()))}


def local(gradient: torch.Tensor | None) -> torch.Tensor | None:
    """What this rank holds of a gradient that is spread over ranks."""
    return getattr(gradient, "_local_tensor", gradient)
