"""Modules that the program itself has put in eval mode, and not in train mode since."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

from torch import nn

from gradscope.recording.recorder import Recorder
from gradscope.recording.wrappers import parameters_in

MAX_KNOWN = 5_000
"""Modules in eval mode that are remembered."""


class EvalModes:
    """Watches the calls that change the mode of a module."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._in_eval: dict[int, weakref.ref[nn.Module]] = {}
        self._originals: dict[str, Any] = {}

    def start(self) -> None:
        """Wrap them."""
        for name in ("train", "eval"):
            original = self._originals[name] = vars(nn.Module)[name]
            setattr(nn.Module, name, self._switching(name, original))

    def stop(self) -> None:
        """Leave the class as it was."""
        for name, original in self._originals.items():
            setattr(nn.Module, name, original)
        self._originals.clear()

    def parameters(self) -> set[int]:
        """The ids of the parameters that such modules hold."""
        living = (module for one in self._in_eval.values() if (module := one()) is not None)
        return {id(parameter) for module in living for parameter in parameters_in(module)}

    def _switching(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def switch(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            # Torch itself calls it for all parts of a module.
            if not self._recorder.places.is_foreign(sys._getframe(1).f_code):
                with self._recorder.aside():
                    if name == "train" and (args[0] if args else kwargs.get("mode", True)):
                        self._in_eval.pop(id(module), None)
                    elif len(self._in_eval) < MAX_KNOWN:
                        self._in_eval[id(module)] = weakref.ref(module)
            return original(module, *args, **kwargs)

        return switch
