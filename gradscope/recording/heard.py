"""Functions of torch that are no torch calls, and of which a listener is to hear all the same.

Torch has no hooks for them, so they are wrapped while the program runs; each does what it did.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from gradscope.autograd.isolation import is_captured, mode_removed
from gradscope.patched import Original, Patched
from gradscope.recording.recorder import Recorder


@dataclass(eq=False)
class HeardCall:
    """A call of a function that is wrapped: what it is given, by which frame, what it has returned,
    whether history was recorded; and the ``parameters`` that it clips."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    frame: FrameType
    records: bool
    result: Any = None
    parameters: Sequence[torch.Tensor] = ()

    @property
    def is_from_torch(self) -> bool:
        """Whether torch's own code makes it."""
        return self.frame.f_code.co_filename.startswith(_TORCH)


def hearing(
    recorder: Recorder,
    owner: Any,
    name: str,
    before: Callable[[HeardCall], None] | None = None,
    after: Callable[[HeardCall], None] | None = None,
    quietly: bool = False,
) -> Patched:
    """Tell of each call of a function before it is made and after it has returned; of torch calls
    inside of it nobody hears, if it is made ``quietly``."""

    def around(original: Original) -> Original:
        @functools.wraps(original)
        def heard(*args: Any, **kwargs: Any) -> Any:
            # A method that is called without its object by position is nobody's concern.
            is_odd = not args and isinstance(owner, type)
            if is_odd or torch.compiler.is_compiling() or is_captured():
                return original(*args, **kwargs)
            call = HeardCall(name, args, kwargs, sys._getframe(1), torch.is_grad_enabled())
            if before is not None:
                with recorder.aside():
                    before(call)
            with mode_removed(recorder) if quietly else nullcontext():
                call.result = original(*call.args, **call.kwargs)
            if after is not None:
                with recorder.aside():
                    after(call)
            return call.result

        return heard

    return Patched(owner, name, around)


_TORCH = torch.__file__.rpartition("/")[0] + "/"
