"""The ways in which one program is run: under python, under a command, and under independent hooks.

Made to be called in a process forked for it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType

import torch

import gradscope
from gradscope.cli import run as run_command
from gradscope.recording import compiler
from tests.fuzz import asking, fingerprint, independent

OFTEN_USED = (
    *("asyncio", "concurrent.futures", "copy", "inspect", "logging", "numpy.random", "pickle"),
    *("pdb", "subprocess", "sympy", "torch._subclasses.schema_check_mode", "torch.fx"),
    *("torch._decomp.decompositions_for_jvp", "torch._dynamo", "torch._functorch.aot_autograd"),
    *("torch._dynamo.backends.debugging", "torch.export", "torch.nested._internal.ops"),
    *("torch.fx.experimental.proxy_tensor", "torch.fx.experimental.symbolic_shapes"),
    *("torch.nn.utils.parametrizations", "torch.nn.utils.prune", "torch.optim.swa_utils"),
    *("torch.profiler", "torch.utils._device", "torch.utils.checkpoint"),
    *("torch.utils.data", "torch.utils.flop_counter", "torch.distributions"),
    # What torch.compile imports where it is first called.
    *("torch._dynamo.repro.after_aot", "torch._dynamo.testing", "torch._export.db.logging"),
    *("torch._inductor.lowering", "torch.nn.attention.flex_attention"),
)
SAVED = Path(__file__).parents[1] / "saved" / "backward.json"

_PERTURB = -6
"""``M_PERTURB`` of glibc: what new memory is filled with."""

REPORT = "report.json"
REFERENCE = "reference.json"


def warm_up() -> None:
    """Import what every run needs, so that no fork has to; and stay without threads, which a fork
    would not take along."""
    torch.set_num_threads(1)
    # A fork makes torch's pool of threads anew where it is first asked for, and ends by an abort
    # where two threads ask at once.  Those of the engine do: eight of them, with fake tensors and a
    # torch for CUDA that finds none.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(torch.get_num_threads()))
    # What a run remembers must not be found by the next, nor by whoever works in this folder.
    cache = tempfile.mkdtemp(prefix="fuzz-cache-")
    atexit.register(shutil.rmtree, cache, ignore_errors=True)
    os.environ.update(XDG_CACHE_HOME=cache, COLUMNS="100", NO_COLOR="1", OMP_NUM_THREADS="1")
    for name in OFTEN_USED:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(gradscope.__path__, "gradscope."):
        # The trainers are large, and need not be installed.
        if not module.name.endswith(("__main__", ".lightning", ".transformers")):
            importlib.import_module(module.name)
    # The first command fills the caches of python and of the libraries, and imports what these
    # need; one that shows a file starts no thread.  So do torch's seeding and the end of a program.
    with contextlib.redirect_stdout(io.StringIO()):
        run_command(["show", str(SAVED)])
        state = torch.get_rng_state()
        torch.manual_seed(0)
        torch.set_rng_state(state)
        fingerprint.tell({}, at_exit=True)
    # Every fork would tell torch.compile of all our functions, which takes most of a short run.
    compiler.keep_out()
    # Torch has hundreds of them; each fork would go through all to take them out.
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    # Otherwise every collection in a fork would copy all that was imported.
    gc.collect()
    gc.freeze()


def plain(path: Path, *arguments: str, strict: bool = False) -> Callable[[], None]:
    """As ``python PATH ARGUMENTS``; ``strict``: with ``-W error``."""

    def run() -> None:
        # Memory that nothing has written holds other bytes each time: a program that reads it, as
        # a product with a meta tensor does, is not the same twice.
        if sys.platform == "linux":
            ctypes.CDLL(None).mallopt(_PERTURB, os.getpid() % 255 + 1)
        _execute(path, *arguments, strict=strict)

    return run


def asked(path: Path, question: str, strict: bool = False) -> Callable[[], None]:
    """As ``python PATH``, where the program asks gradscope itself: one of
    :data:`tests.fuzz.asking.QUESTIONS`."""

    def run() -> None:
        asking.question = question
        with asking.watched():
            _execute(path, strict=strict)

    return run


def watched(
    path: Path, arguments: list[str], report: str = REPORT, strict: bool = False
) -> Callable[[], None]:
    """As ``gradscope ARGUMENTS PATH``, which writes its report into the current directory;
    ``strict``: under ``python -W error``."""

    def run() -> None:
        from gradscope.cli import entry

        if strict:
            warnings.simplefilter("error")
        sys.argv[:] = ["gradscope", *arguments, *["-o", report][: 2 * bool(report)], str(path)]
        entry()

    return run


def referred(path: Path) -> Callable[[], None]:
    """As python, with hooks on every node of every backward call; what they saw goes into a file of
    the current directory."""

    def run() -> None:
        target = Path(REFERENCE).absolute()
        seen = independent.install()
        try:
            _execute(path)
        finally:
            target.write_text(json.dumps(seen))

    return run


def compiled(path: Path) -> CodeType:
    """A program, as python compiles a file."""
    return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)


def _execute(path: Path, *arguments: str, strict: bool = False) -> None:
    code = compiled(path)
    if strict:
        warnings.simplefilter("error")
    main = ModuleType("__main__")
    main.__file__ = str(path)
    sys.argv[:] = [str(path), *arguments]
    sys.path[:1] = [str(path.parent)]
    sys.modules["__main__"] = main
    exec(code, vars(main))
