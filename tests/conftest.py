"""Fixtures: the command line in this process and in its own, and a check that nothing of ours stays
installed."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests import forkserver, goldens
from tests.fuzz.process import ran

if TYPE_CHECKING:
    # It imports torch, which who only hands the tests out to other processes has no need of.
    from tests.looking import Done, Session

ROOT = Path(__file__).parent.parent

# Nothing is timed: a busy machine fails no test.
settings.register_profile(
    "untimed", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")


LONGEST = (
    *("page_in_browser", "docs", "fuzz", "released", "ranks", "unchanged", "hostile", "clinic"),
    *("faults", "deep", "doctor_models", "explain", "unharmed", "render_pictures", "derivatives"),
    *("api_calls", "late", "process_state", "target_like_python", "injected", "folded", "rules"),
    *("sample", "notebook"),
)
"""The files of tests that take more than nine seconds, the longest first."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Several processes begin with what takes longest, so that none is left with it at the end."""
    if hasattr(config, "workerinput"):
        order = {name: position for position, name in enumerate(LONGEST)}
        items.sort(key=lambda item: order.get(item.path.stem.removeprefix("test_"), len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of xdist has ended: what it compared counts for all."""
    goldens.compared.update(getattr(node, "workeroutput", {}).get("goldens", ()))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A golden file that no test of the whole suite has read is a fault."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["goldens"] = list(goldens.compared)
        return
    narrower = ("keyword", "deselect", "lf", "stepwise", "collectonly")
    is_whole = config.args_source == config.ArgsSource.TESTPATHS
    is_whole &= config.getoption("markexpr") in ("", "not long")  # none of the long ones reads any
    if is_whole and not exitstatus and not any(config.getoption(one, None) for one in narrower):
        left = goldens.left_over(goldens.compared)
        if left:
            print(f"\nno test reads: {', '.join(left)}", file=sys.stderr)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests have counted and noted by ``record_property``: the rows of a table in the docs."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        for word, count in report.user_properties:
            counts[word] += count
    for word, count in counts.items():
        terminalreporter.write_line(f"{word:32} {count:8,}")


@pytest.fixture(autouse=True)
def _fixed_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test sees 100 columns without colour, whatever it is run in."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)


@pytest.fixture(autouse=True)
def _nothing_left_installed() -> Iterator[None]:
    """Fail when a test leaves a hook, patch, mode or thread behind."""
    before = _installed()
    threads = _threads()
    torch = sys.modules.get("torch")
    state = torch.get_rng_state() if torch else None
    excepthook = sys.excepthook
    yield
    if torch is not None:
        torch.set_rng_state(state)
    after = _installed()
    # A process group of torch.distributed leaves its own.
    sys.excepthook = excepthook
    # A test that was the first to import torch has nothing to be compared with.
    left = {name: after[name] for name in before if before[name] != after[name]}
    assert not left, f"left installed: {left}"
    assert _threads() <= threads


def _threads() -> set[threading.Thread]:
    # Daemons are of others: tqdm starts one when torch.compile draws a progress bar.
    return {thread for thread in threading.enumerate() if not thread.daemon}


def _installed() -> dict[str, object]:
    found: dict[str, object] = {
        "showwarning": warnings.showwarning,
        "show": vars(warnings).get("_showwarnmsg"),
        "loader": SourceFileLoader.exec_module,
        "trace": sys.gettrace(),
        "thread hook": threading.excepthook,
        "traceback": traceback.TracebackException.__init__,
    }
    torch = sys.modules.get("torch")
    recorder = sys.modules.get("gradscope.recording.recorder")
    if torch is None or recorder is None:
        return found
    hooks = torch.nn.modules.module
    found["recorder"] = recorder.Recorder.active
    found["modes"] = list(torch.overrides._get_current_function_mode_stack())
    found["apply"] = torch.autograd.Function.__dict__["apply"]
    found["backward"] = torch.autograd.backward
    found["module hooks"] = {
        name: dict(value)
        for name, value in vars(hooks).items()
        if name.startswith("_global_") and isinstance(value, dict)
    }
    return found


@contextmanager
def process_preserved() -> Iterator[None]:
    """Undo what running a user's program changes in the interpreter."""
    argv, path, main = list(sys.argv), list(sys.path), sys.modules["__main__"]
    modules, cwd, limit = set(sys.modules), Path.cwd(), sys.getrecursionlimit()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if "torch" in sys.modules:
            sys.modules["torch"].set_grad_enabled(True)  # a program may have left it off
        sys.argv[:], sys.path[:] = argv, path
        sys.modules["__main__"] = main
        sys.setrecursionlimit(limit)  # raised with every program, it would make each slower
        os.chdir(cwd)
        for name in set(sys.modules) - modules:
            if _is_of_a_program(sys.modules[name]):
                del sys.modules[name]


def _is_of_a_program(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None) or ""
    return "site-packages" not in file and not file.startswith(
        (str(ROOT / "gradscope"), sys.prefix)
    )


def python_says(path: str) -> Done:
    """The same program under plain python, in its own process, which is a fork."""
    from tests.looking import Done

    folder = Path(path).parent
    done = ran([forkserver.script(), path], folder)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Session:
    """A user in an empty folder, whose commands run in this process."""
    from tests.looking import Done, Session

    # What earlier programs left in cycles is not the next one's, and what is alive by now (all that
    # was imported) is none of its objects: neither a collection nor the doctor goes through it.
    gc.collect()
    gc.freeze()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    for formulas in forkserver.FOLDER.glob("derivatives-*.json"):  # which take seconds to read
        (tmp_path / ".cache" / "gradscope").mkdir(parents=True, exist_ok=True)
        shutil.copy(formulas, tmp_path / ".cache" / "gradscope")

    def run(arguments: list[str]) -> Done:
        from gradscope.cli import run as run_command

        capfd.readouterr()
        with process_preserved():
            result = run_command(arguments)
        captured = capfd.readouterr()
        own = result.ending.status if result.ending else 0
        return _answered(Done(result.status or own, captured.out, captured.err))

    return Session(tmp_path, run)


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """The same user, each of whose commands is a process of its own: a fork of one that has
    imported all."""
    return _with_processes(tmp_path, monkeypatch, lambda: [forkserver.gradscope()])


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """The same, where it matters that python starts anew."""
    return _with_processes(tmp_path, monkeypatch, lambda: [sys.executable, "-m", "gradscope"])


def _with_processes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[[], list[str]]
) -> Session:
    from tests.looking import Done, Session

    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / ".cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(arguments: list[str]) -> Done:
        done = ran([*command(), *arguments], folder)
        return _answered(Done(done.returncode, done.stdout, done.stderr))

    return Session(folder, run)


def _answered(done: Done) -> Done:
    """What a command says; a test of what the torch that is installed is too old for is skipped."""
    from gradscope.autograd.nodes import IS_TOLD

    if not IS_TOLD and "gradscope memory needs torch" in done.err:
        pytest.skip(done.err)
    return done
