"""The same values kept twice, in a wider and in a narrower dtype.

Compares whole storages, so that a transposed copy is found too.  Knows nothing of graphs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import torch

from gradscope.autograd.summary import readable

FEWEST = 64
"""Elements below which equal values say nothing."""

SAMPLED = 16
"""Elements that are compared before all are."""


class Candidate(NamedTuple):
    """A tensor whose storage may hold what another one holds too, and how the caller calls it."""

    label: int
    tensor: torch.Tensor


def twins(candidates: Sequence[Candidate]) -> list[tuple[int, int]]:
    """Pairs of labels: a narrower copy, and what it is a copy of; each copy once."""
    flat = {one.label: _flat(one.tensor) for one in candidates if _is_comparable(one.tensor)}
    samples = _sampled(flat)
    groups: dict[tuple[int, torch.device], dict[torch.dtype, list[int]]] = {}
    for label, values in flat.items():
        group = groups.setdefault((values.numel(), values.device), defaultdict(list))
        group[values.dtype].append(label)
    found: dict[int, int] = {}
    for by_dtype in groups.values():
        for wide, narrow in permutations(by_dtype, 2):
            # Only from wide to narrow: in one dtype equal values may be chance, as zeros are.
            if wide.itemsize > narrow.itemsize:
                _pair(flat, samples, (by_dtype[wide], by_dtype[narrow]), found)
    return sorted(found.items())


def _pair(
    flat: dict[int, torch.Tensor],
    samples: dict[int, torch.Tensor],
    labels: tuple[list[int], list[int]],
    found: dict[int, int],
) -> None:
    wide_labels, narrow_labels = labels
    narrow = flat[narrow_labels[0]].dtype
    alike: dict[tuple[float, ...], list[int]] = defaultdict(list)
    for label in wide_labels:
        # Rounded as the copy was: only then are equal values equal.
        alike[tuple(samples[label].to(narrow).tolist())].append(label)
    for label in narrow_labels:
        sample = tuple(samples[label].to(narrow).tolist())
        for original in alike.get(sample, ()) if label not in found else ():
            if torch.equal(flat[original].to(narrow), flat[label]):
                found[label] = original
                break


def _sampled(flat: dict[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    """A few elements of each, fetched together: a GPU is waited for once, not once a tensor."""
    found: dict[int, torch.Tensor] = {}
    by_device: dict[torch.device, list[int]] = defaultdict(list)
    for label, values in flat.items():
        by_device[values.device].append(label)
    for labels in by_device.values():
        picked = [flat[label][:: flat[label].numel() // SAMPLED][:SAMPLED] for label in labels]
        # As float64, which holds the numbers of all these dtypes: one stack, and one wait.
        rows = torch.stack([sample.double() for sample in picked]).cpu()
        found.update(zip(labels, rows, strict=True))
    return found


def _is_comparable(tensor: torch.Tensor) -> bool:
    if not readable(tensor) or not tensor.is_floating_point():
        return False
    return tensor.untyped_storage().nbytes() // tensor.element_size() >= FEWEST


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage as one row."""
    storage = tensor.untyped_storage()
    size = storage.nbytes() // tensor.element_size()
    return tensor.detach().as_strided((size,), (1,), 0)
