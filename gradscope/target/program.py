"""Runs a prepared program in this process as python would run it in its own.

Changes what running changes in the interpreter (``sys.argv``, ``sys.path``, ``__main__``); seeds
the random numbers before the program draws any, where its user asked for that, and imports nothing
for it that the program does not.  Must not know torch, nor what the callbacks it is given do.  To
import torch beforehand would be simpler than to watch for it, but then a program that sets an
environment variable before ``import torch`` would not do what it does under python.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

from gradscope.errors import GradscopeError
from gradscope.target.cleaning import CLEAN_PRINTING, clean
from gradscope.target.description import Target
from gradscope.target.ending import Ending, Shown, StopProgram, was_stopped
from gradscope.target.launch import Launch, Refused, launch

try:
    import resource
except ImportError:  # Windows, which has no fork either
    resource = None  # type: ignore[assignment]


class Program:
    """A prepared target; made by :meth:`prepare`, run once.

    ``seed``: what its random numbers start from; None leaves them to the program.  ``failure``:
    what preparing it raised, and running it does.
    """

    def __init__(
        self,
        target: Target,
        ready: Launch,
        seed: int | None = None,
        failure: BaseException | None = None,
    ) -> None:
        self.target = target
        self.ready = ready
        self.seed = seed
        self._failure = failure

    @classmethod
    def prepare(cls, target: Target, seed: int | None = None) -> Program:
        """Find, read and compile the program.  Nothing of it runs and nothing is changed yet.

        A ``SyntaxError`` is kept and becomes the :class:`Ending` of :meth:`run`.

        Raises:
            TargetError: the script is missing, unreadable, or not a script.
            ToolMissing: what runs such a program is not installed.
        """
        try:
            return cls(target, launch(target), seed)
        except GradscopeError:
            raise
        # Too deeply nested source raises RecursionError or MemoryError instead of SyntaxError.
        except Exception as error:
            clean(error)
            return cls(target, Launch(None, "", "", dict, variables={}), seed, error)

    def run(
        self,
        before: Callable[[dict[str, Any]], None] | None = None,
        on_torch: Callable[[], None] | None = None,
    ) -> Ending:
        """Run the program to its end, whatever that is.

        ``sys.argv``, ``sys.path``, ``__main__`` and the current directory stay as the program left
        them, for its threads and ``atexit`` handlers.

        Args:
            before: called with the globals before anything of the program runs.
            on_torch: called once, as soon as torch is imported: at once if it is already, else when
                the program's first import of it has succeeded, in the thread that imports it.

        Raises:
            TargetError: a module or function turned out not to exist, or not to be callable.
            Exception: what ``before`` or ``on_torch`` raised.
        """
        if self._failure is not None:
            return Ending(self._failure, None, {})
        if self.ready.variables is None:
            self._enter(self.ready)
        # Before the watch starts, for this may import torch itself.
        if before is not None:
            before(self.ready.namespace)

        def torch_is_there() -> None:
            if self.seed is not None:  # the generators of torch, on every device
                sys.modules["torch"].manual_seed(self.seed)
            if on_torch is not None:
                on_torch()

        watch = ImportWatch("torch", torch_is_there)
        with seeded(self.seed), CLEAN_PRINTING[0], CLEAN_PRINTING[1]:
            watch.start()
            try:
                exception, value = _outcome(self.ready.execute)
            finally:
                watch.stop()
        if watch.failure is not None:
            raise watch.failure
        if isinstance(exception, Refused):
            raise exception.error
        namespace = self.ready.namespace
        self.ready.let_go()
        if isinstance(exception, Shown):
            return Ending(exception.error, None, namespace, is_shown=True)
        return Ending(exception, value, namespace)

    def _enter(self, ready: Launch) -> None:
        # In place, for whoever holds the list already.
        sys.argv[:] = [ready.argument_zero, *self.target.arguments]
        if not sys.flags.safe_path:
            # What stands first is where python found us; the program expects its own place there.
            sys.path[:1] = [ready.path_entry]
        # Pickle, and the children of multiprocessing, look for the program by this name.
        assert ready.main is not None
        # From here on only the program's own: where torch keeps a traceback for ever, its frames
        # lead to ours, and python at its end empties every module that somebody holds.
        sys.modules["__main__"], ready.main = ready.main, None
        if ready.extra is not None:
            # Never over a module that others use, for a script may be called like one.
            sys.modules.setdefault(ready.extra.__name__, ready.extra)


def _outcome(execute: Callable[[], object]) -> tuple[BaseException | None, object]:
    """Call ``execute``; return what escaped it, cleaned, and what it returned."""
    try:
        return None, execute()
    except StopProgram:
        return None, None
    except BaseException as error:
        escaped = error
    # Outside the handler, so that nothing raised later has this as its context.
    if was_stopped(escaped):
        return None, None
    clean(escaped)
    return escaped, None


_LARGEST_OF_NUMPY = 2**32


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """While the block runs, the global generators of python and numpy start from ``seed``; None
    leaves all as it is."""
    if seed is None:
        yield
        return
    import random

    random.seed(seed)

    def numpy() -> None:
        importlib.import_module("numpy.random").seed(seed % _LARGEST_OF_NUMPY)

    watch = ImportWatch("numpy", numpy)
    watch.start()
    try:
        yield
    finally:
        watch.stop()
    if watch.failure is not None:
        raise watch.failure


_HOLDER: Any = next(kind for kind in SourceFileLoader.__mro__ if "exec_module" in vars(kind))
"""The class from which every loader of python code has the method that runs a module."""


class ImportWatch:
    """Calls back once: when a module is there already, or right after its import has succeeded.

    It waits where loaders run a module, and not among the finders: the program may put finders of
    its own before all others, and give the loader that they find a method of its own.

    Attributes:
        failure: what the callback raised inside the program's import statement.  It has stopped
            the program and is for the caller to raise: there it would look like the program's.
    """

    def __init__(self, module: str, then: Callable[[], None]) -> None:
        self._module = module
        self._then = then
        self._before: Any = None
        self._is_waiting = False
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Call back at once if it is imported, else wait for it."""
        if self._module in sys.modules:
            self._then()
            return
        self._is_waiting = True
        self._before = vars(_HOLDER)["exec_module"]
        _HOLDER.exec_module = self

    def stop(self) -> None:
        """Wait no longer; harmless when not waiting."""
        self._is_waiting = False
        # One that was started later lies above, and takes this one off with itself.  The program
        # may have put a function of its own there, which stays.
        while isinstance(above := vars(_HOLDER)["exec_module"], ImportWatch):
            if above._is_waiting:
                break
            _HOLDER.exec_module = above._before

    def __get__(self, loader: Any, kind: type | None = None) -> Any:
        """The method ``exec_module`` of a loader: no frame of ours stands in any other import."""
        method = self._before.__get__(loader, kind)
        if loader is None:
            # Who puts a function of its own around it calls that later, with a loader.
            @wraps(method)
            def exec_module(loader: Any, module: ModuleType) -> Any:
                return self.__get__(loader, type(loader))(module)

            return exec_module
        is_meant = self._is_waiting and getattr(loader, "name", None) == self._module
        return partial(self._execute, method) if is_meant else method

    def _execute(self, method: Callable[[ModuleType], None], module: ModuleType) -> None:
        method(module)
        # The program may load a spec that it has asked for earlier after all has ended.
        if not self._is_waiting:
            return
        self.stop()
        try:
            self._then()
        except BaseException as failure:
            self.failure = failure
            raise StopProgram from failure


class OtherProcesses:
    """Whether a program has worked in other processes since this object was made."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._used = _used_by_children()

    @property
    def is_this_one(self) -> bool:
        """Whether this is a forked child of the process that the program was started in."""
        return os.getpid() != self._process

    @property
    def have_run(self) -> bool:
        """Whether children are running, or have run to their end."""
        # Not imported here: who has started no process with it need not pay for it.
        module = sys.modules.get("multiprocessing")
        running = module is not None and bool(module.active_children())
        return running or _used_by_children() > self._used


def _used_by_children() -> int:
    """Pages that children which have ended had mapped: no process runs without any."""
    if resource is None:
        return 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
