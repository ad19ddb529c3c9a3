"""The buffers of a program's modules, in two numbers each that tell whether ranks hold the same.

Read only where other ranks have the same modules.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.autograd.elements import readable
from gradscope.autograd.isolation import functions_off
from gradscope.model.observations import TrackedBuffer
from gradscope.model.plain import number
from gradscope.recording.wrappers import plain_path

LARGEST = 2**20
"""Elements of a buffer that are read; of a larger one those in equal distances."""

MOST = 2_000
"""Buffers that are told of."""


def buffers(listener: DoctorListener) -> Iterator[TrackedBuffer]:
    """What the program's own modules keep besides parameters, as it is now."""
    if not listener.is_shared:
        return
    with functions_off():
        found = dict(_named(listener))
        marks = _marks([tensor for tensor, _ in found.values()])
    for (name, (tensor, is_sent)), (size, mark) in zip(found.items(), marks, strict=True):
        is_exact = not (tensor.is_floating_point() or tensor.is_complex())
        yield TrackedBuffer(
            name, tuple(tensor.shape), number(size), number(mark), is_exact, is_sent
        )


def _named(listener: DoctorListener) -> Iterator[tuple[str, tuple[torch.Tensor, bool]]]:
    """Each buffer by its name, and whether torch sends that of rank 0 to all."""
    told: set[int] = set()
    names: dict[str, int] = {}
    for root in list(listener.recorder.modules.living_roots()):
        sent = _sent_from_rank_0(root)
        for full, part in nn.Module.named_modules(root):
            for name, tensor in _own_buffers(part):
                if id(tensor) in told or len(told) >= MOST:
                    continue
                told.add(id(tensor))
                path = plain_path(root, f"{full}.{name}" if full else name)
                names[path] = names.get(path, 0) + 1
                path = path if names[path] == 1 else f"{path} ({names[path]})"
                yield path, (tensor.detach(), id(part) in sent)


def _sent_from_rank_0(root: nn.Module) -> set[int]:
    """The modules whose buffers DistributedDataParallel makes the same before each forward."""
    found: set[int] = set()
    for part in nn.Module.modules(root):
        if isinstance(part, nn.parallel.DistributedDataParallel) and _sends_buffers(part):
            found.update(map(id, nn.Module.modules(part)))
    return found


def _sends_buffers(wrapper: nn.Module) -> bool:
    # Not asked by the old name, which newer versions of torch warn of.
    kept = vars(wrapper)
    return bool(kept.get("forward_sync_buffers", kept.get("broadcast_buffers")))


def _own_buffers(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The buffers that a checkpoint holds, of a class that is to have the same on all ranks.

    Batch statistics of torch's own are of each rank's batches, as everybody knows; what is not kept
    in a checkpoint is room to work in.
    """
    # fully_shard makes a class of its own of every class.
    kind = next(one for one in type(module).__mro__ if not hasattr(one, "_get_fsdp_state"))
    is_synchronised = issubclass(kind, nn.SyncBatchNorm)
    is_torchs = kind.__module__.startswith("torch.")
    # Packages make batch norms of their own from torch's.
    is_statistics = issubclass(kind, nn.modules.batchnorm._NormBase)
    if (is_torchs or is_statistics) and not is_synchronised:
        return
    kept = vars(module)
    for name, tensor in kept.get("_buffers", {}).items():
        is_scratch = name in kept.get("_non_persistent_buffers_set", ())
        # Of a tensor that is spread over ranks each holds another part.
        is_whole = tensor is not None and not hasattr(tensor, "placements")
        if is_whole and not is_scratch and tensor.numel() and readable(tensor):
            yield name, tensor


def _marks(tensors: list[torch.Tensor]) -> list[tuple[float, float]]:
    """Of each tensor its 2-norm, and a sum in which every place has a weight of its own."""
    by_device: dict[torch.device, list[int]] = {}
    for index, tensor in enumerate(tensors):
        by_device.setdefault(tensor.device, []).append(index)
    found = [(0.0, 0.0)] * len(tensors)
    for indices in by_device.values():
        # Together, so that a device is waited for once.
        pairs = torch.stack([_mark(tensors[index]) for index in indices]).tolist()
        for index, (size, mark) in zip(indices, pairs, strict=True):
            found[index] = (size, mark)
    return found


def _mark(tensor: torch.Tensor) -> torch.Tensor:
    flat = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).reshape(-1)
    flat = flat[:: -(-flat.numel() // LARGEST)]
    wide = torch.float32 if flat.device.type == "mps" else torch.float64
    flat = flat.to(wide)
    weights = torch.arange(flat.numel(), dtype=wide, device=flat.device).cos()
    return torch.stack([torch.linalg.vector_norm(flat), flat @ weights])
