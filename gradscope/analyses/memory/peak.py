"""The peak of memory while the program's backward call runs.

CUDA's allocator keeps a peak of its own, which is read and not reset: the program may read it too.
The CPU's keeps none, and torch's profiler does not see it free what was allocated before.
"""

from __future__ import annotations

from collections.abc import Collection

import torch

from gradscope.model.memory import Peak

_CPU = "the CPU's allocator keeps no peak"
_NO_CALL = "the program's own backward call was not made"


def awaited(devices: Collection[str]) -> tuple[Peak, ...]:
    """One entry a device, with nothing measured yet."""
    return tuple(
        Peak(device, reason=_NO_CALL if device.startswith("cuda") else _CPU)
        for device in sorted(devices)
    )


class Peaks:
    """What CUDA's allocators say before a backward call, and after it."""

    def __init__(self, peaks: tuple[Peak, ...]) -> None:
        self._peaks = peaks
        self._before = {peak.device: _stand(peak.device) for peak in peaks if _is_measured(peak)}

    def __bool__(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._before)

    def read(self) -> tuple[Peak, ...]:
        """The peaks, now that the call has ended."""
        return tuple(self._after(peak) for peak in self._peaks)

    def _after(self, peak: Peak) -> Peak:
        if peak.device not in self._before:
            return peak
        allocated, highest = self._before[peak.device]
        now = _stand(peak.device)[1]
        return Peak(peak.device, now, allocated, reached=now > highest)


def _is_measured(peak: Peak) -> bool:
    return peak.device.startswith("cuda")


def _stand(device: str) -> tuple[int, int]:
    return torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
