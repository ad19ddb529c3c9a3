"""In which order the gradients of one backward call come, and what each is before the processes of
a job average it: a hook on each parameter, for as long as the call runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradscope.watching.norms import Norms
from gradscope.watching.taps import Unseen


class Arrivals:
    """Hears of each ``.grad`` when it has been set; ``norms``, where there are other processes,
    gets what it is then, whose position is in ``norm_of`` by the id of the parameter."""

    def __init__(
        self,
        parameters: Sequence[torch.Tensor],
        norms: Norms | None,
        note_fault: Callable[[Exception], None],
    ) -> None:
        self.order: list[torch.Tensor] = []
        self.norm_of: dict[int, int] = {}
        self.is_one_of_many = norms is not None
        self._norms = norms
        self._note_fault = note_fault
        self._handles: list[tuple[Any, bool, Any]] = []
        # A compiler of backward would make the hooks a part of what it compiles.
        compiler = sys.modules.get("torch._dynamo.compiled_autograd")
        if not getattr(compiler, "compiled_autograd_enabled", False):
            hook = self.order.append if norms is None else self._came
            for one in parameters:
                if one.requires_grad and one.is_leaf:
                    self._add(one, hook)

    def _add(self, parameter: Any, hook: Callable[[torch.Tensor], None]) -> None:
        had_none = parameter._post_accumulate_grad_hooks is None
        handle = parameter.register_post_accumulate_grad_hook(hook)
        self._handles.append((parameter, had_none, handle))

    def _came(self, parameter: torch.Tensor) -> None:
        self.order.append(parameter)
        gradient = parameter.grad
        # Of one that is spread over the processes there is a part, which only they can add up.
        if self._norms is not None and gradient is not None and not hasattr(gradient, "to_local"):
            with Unseen(self._note_fault):
                (self.norm_of[id(parameter)],) = self._norms.add([gradient])

    def end(self) -> None:
        """The call is over."""
        for parameter, had_none, handle in self._handles:
            handle.remove()
            # Torch leaves an empty dict, and goes through python for it each time.
            if had_none and not parameter._post_accumulate_grad_hooks:
                parameter._post_accumulate_grad_hooks = None
