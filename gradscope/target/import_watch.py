"""Tells the moment at which the program has imported torch, or another module.

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


class ImportWatch(importlib.abc.MetaPathFinder):
    """Calls back once: when a module is there already, or right after its import has succeeded.

    Attributes:
        failure: what the callback raised inside the program's import statement.  It has stopped
            the program and is for the caller to raise: there it would look like the program's.
    """

    def __init__(self, module: str, then: Callable[[], None]) -> None:
        self._module = module
        self._then = then
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Call back at once if it is imported, else wait for it."""
        if self._module in sys.modules:
            self._then()
        else:
            # In front, because whoever finds it ends the search.
            sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Wait no longer; harmless when not waiting."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find the module, and have its loader tell when it is done."""
        if fullname != self._module:
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
            # Gone before the module runs: the loader that it keeps is the real one, untouched.
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
            self._then()
        except BaseException as failure:
            self.failure = failure
            raise StopProgram from failure
