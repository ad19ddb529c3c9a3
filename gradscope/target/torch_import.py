"""Tells the moment at which the program has imported torch.

Importing torch ourselves beforehand would be simpler, but then a program that sets an environment
variable before ``import torch`` would not do what it does under python.  Must not import torch.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from gradscope.target.ending import StopProgram

_TORCH = "torch"


class TorchWatch(importlib.abc.MetaPathFinder):
    """Calls back once: when torch is there already, or right after its import has succeeded.

    Attributes:
        failure: what the callback raised inside the program's import statement.  It has stopped
            the program and is for the caller to raise: there it would look like the program's.
    """

    def __init__(self, on_torch: Callable[[], None]) -> None:
        self._on_torch = on_torch
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Call back at once if torch is imported, else wait for it."""
        if _TORCH in sys.modules:
            self._on_torch()
        else:
            # In front, because whoever finds torch ends the search.
            sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Wait no longer; harmless when not waiting."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find torch, and have its loader tell when it is done."""
        if fullname != _TORCH:
            return None
        # The finders one by one: the search of importlib itself would come back to us.
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                self._arm(spec)
                return spec
        return None

    def _arm(self, spec: ModuleSpec) -> None:
        loader = spec.loader
        # A loader that takes no attributes cannot tell us; the import itself must go on.
        if loader is None or not isinstance(getattr(loader, "__dict__", None), dict):
            return

        def exec_module(module: ModuleType) -> None:
            # Gone before torch runs: the loader that torch keeps is the real one, untouched.
            vars(loader).pop("exec_module", None)
            loader.exec_module(module)
            self._imported()

        # On the instance, not by a wrapping loader, so that nobody ever sees another loader.
        vars(loader)["exec_module"] = exec_module

    def _imported(self) -> None:
        # A spec that was asked for earlier may be loaded long after the program has ended.
        if self not in sys.meta_path:
            return
        self.stop()
        try:
            self._on_torch()
        except BaseException as failure:
            self.failure = failure
            raise StopProgram from failure
