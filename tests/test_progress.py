"""What a person at a terminal is told while waiting, and that it is never in anyone's way."""

from __future__ import annotations

import _thread
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSCTTY
from threading import Thread
from threading import enumerate as threads_now

import pytest

from gradscope.cli import progress
from tests import forkserver
from tests.conftest import ROOT
from tests.looking import Session, hear_ctrl_c
from tests.terminals import open_terminal, read, screen

WIDTH = 100

HEAD = """
import os, subprocess, sys, threading, time, _thread
import torch

def shown(words="waiting for backward call 1", times=1):
    end = time.monotonic() + 60
    while open("seen", "rb").read().count(words.encode()) < times:
        if time.monotonic() > end:
            raise SystemExit(f"{words} was not shown")  # rather than wait for ever

def a_while():
    time.sleep(0.15)

w = torch.ones(3, requires_grad=True)
KNOWN = set(os.environ.get("THREADS", "").split("\\n"))
"""
END = "\n(w * w).sum().backward()\n"

Command = Callable[..., str]


@contextmanager
def _seen(folder: Path, width: int = WIDTH) -> Iterator[tuple[int, int]]:
    """A terminal, all that is written to which goes into a file that the program can read."""
    leader, follower = open_terminal(width)
    (folder / "seen").touch()

    def keep() -> None:
        with (folder / "seen").open("ab", buffering=0) as file:
            while new := read(leader):
                file.write(new)

    reader = Thread(target=keep)
    reader.start()
    try:
        yield leader, follower
    finally:
        os.close(follower)
        reader.join()
        os.close(leader)


@pytest.fixture
def on_terminal(session: Session, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command on a terminal, where nobody waits for a second; all that it wrote there."""
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "PERIOD", 0.01)
    monkeypatch.setattr(progress, "SPAN", 0.001)
    monkeypatch.setenv("TERM", "xterm")

    def run(text: str, *arguments: str, command: str = "backward") -> str:
        session.write(HEAD + text)
        with (
            _seen(session.folder) as (_, follower),
            open(follower, "wb", closefd=False) as raw,
            monkeypatch.context() as patch,
        ):
            stream = io.TextIOWrapper(raw, "utf-8", line_buffering=True)
            patch.setattr(sys, "stdout", stream)
            patch.setattr(sys, "stderr", stream)
            threads = _thread._count()
            patch.setenv("THREADS", "\n".join(one.name for one in threads_now()))
            session.cli(command, "program.py", *arguments)
            left = [*vars(stream).values(), *vars(raw).values()]
            assert not any(getattr(one, "__module__", "").startswith("gradscope") for one in left)
            assert _thread._count() == threads
            stream.detach()
        return (session.folder / "seen").read_bytes().decode()

    return run


@pytest.mark.parametrize("command", ["trace", "backward", "check", "memory", "doctor", "depends"])
def test_every_command_tells_what_it_waits_for(command: str, on_terminal: Command) -> None:
    on = ("--on", "w") if command == "depends" else ()
    raw = on_terminal(f"shown()\nprint('printed'){END}", *on, command=command)
    left = screen(raw, WIDTH)
    assert left[0] == "printed"
    assert "waiting" not in " ".join(left)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--call", "3"), "waiting for backward call 3"),
        (("--call", "4"), "waiting for backward call 4, 2 made"),
        (("--run-on",), "waiting for the end of the program"),
        (("--steps", "3"), "waiting for backward call 3"),
        (("--run-on",), "reading the gradients of 3 nodes"),
        (("--root", "late.sum()"), "waiting for --root late.sum(), not there at 2 backward calls"),
    ],
)
def test_what_is_waited_for_is_told(
    arguments: tuple[str, ...], told: str, on_terminal: Command
) -> None:
    own = f"w.register_hook(lambda _: shown({told!r}))" if "reading" in told else ""
    twice = "for _ in range(2):\n    (w * w).sum().backward()\n"
    raw = on_terminal(f"{own}\n{twice}shown({told!r})\nlate = w * 2{END}{END}", *arguments)
    assert "waiting" not in " ".join(screen(raw, WIDTH))


def test_the_doctor_tells_how_many_steps_come_in_a_second(on_terminal: Command) -> None:
    steps = "for _ in range(3):\n    (w * w).sum().backward()\n    time.sleep(0.002)\n"
    raw = on_terminal(f"{steps}shown(' steps/s')\nprint('done')\n", command="doctor")
    assert re.search(r"step \d, loss 3, gradient norm [\d.]+, [\d.]+ steps/s", raw)
    assert screen(raw, WIDTH)[0] == "done"


TQDM = """
from tqdm import tqdm
tqdm.monitor_interval = 0  # it would start a thread
shown()
for _ in tqdm(range(3), ncols=60, mininterval=0):
    a_while()
print("done")
"""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("shown(); print('printed'); shown(times=2); print('more')", ["printed", "more"]),
        ("shown(); print('a', file=sys.stderr); shown(times=2)", ["a"]),
        ("shown(); sys.stdout.buffer.write(b'raw\\n'); sys.stdout.flush(); a_while()", ["raw"]),
        ("shown(); sys.stdout.writelines(['a\\n', 'b\\n'])", ["a", "b"]),
        # Of what is written without a buffer of its own, or flushed late, too.
        (
            "sys.stdout.reconfigure(line_buffering=False); print('late'); shown()\n"
            "sys.stdout.flush(); sys.stdout.buffer.write(b'later\\n'); shown(times=2)\n"
            "sys.stdout.buffer.flush(); sys.stdout.reconfigure(line_buffering=True)",
            ["late", "later"],
        ),
        # A bar of the program's own: nothing is drawn over it.
        (
            "shown()\nfor part in (10, 50, 99):\n    print(end=f'\\r{part}%', flush=True)\n"
            "    a_while()\nassert open('seen').read().count('waiting') == 1\nprint()",
            ["99%"],
        ),
        # The program's children write there as well: its forks know of the line,
        (
            "shown(); child = os.fork()\nif not child:\n    a_while()\n    print('child')\n"
            "    os._exit(0)\nos.waitpid(child, 0); shown(times=2); print('parent')",
            ["child", "parent"],
        ),
        (
            "shown(); child = os.fork()\nif not child:\n    shown(times=2)\n    print('child')\n"
            "    os._exit(0)\nos.waitpid(child, 0)",
            ["child"],
        ),
        # and for other programs it is taken away; a busy machine needs a while to start one.
        (
            "from gradscope.cli import progress; progress.PERIOD = 0.1\n"
            "shown(); subprocess.run('printf begun; sleep 0.2; echo', shell=True, "
            "stdout=sys.stdout.fileno()); shown(times=2)",
            ["begun"],
        ),
        # Those of the test's process are there as well.
        ("shown(); print({t.name for t in threading.enumerate()} - KNOWN)", ["set()"]),
        ("shown(); sys.stdout.write(3)", []),
    ],
)
def test_what_the_program_writes_stands_as_without_us(
    text: str, left: list[str], on_terminal: Command
) -> None:
    raw = on_terminal(text + END, "-o", "out.json")
    kept = screen(raw, WIDTH)
    assert kept[: len(left)] == left
    assert "waiting" not in " ".join(kept)


def test_a_bar_of_tqdm_is_left_alone(on_terminal: Command) -> None:
    pytest.importorskip("tqdm")
    raw = on_terminal(TQDM + END, "-o", "out.json")
    before, _, bar = raw.partition("0%|")
    assert "waiting" in before
    assert "waiting" not in bar.partition("100%|")[0]
    shown, done = screen(raw, WIDTH)[:2]
    assert "3/3" in shown
    assert done == "done"


def test_what_the_program_puts_in_place_of_write_stays(on_terminal: Command) -> None:
    own = "write = sys.stdout.write\ndef own(text): return write(text.upper())\n"
    raw = on_terminal(f"{own}sys.stdout.write = own\nprint('loud'); shown(){END}", "-o", "out.json")
    assert screen(raw, WIDTH)[0] == "LOUD"


@pytest.mark.parametrize(
    ("arguments", "variable"),
    [(("-q",), ("TERM", "xterm")), ((), ("TERM", "dumb")), ((), ("RANK", "0"))],
)
def test_where_it_is_not_wanted_there_is_not_even_a_thread(
    arguments: tuple[str, ...],
    variable: tuple[str, str],
    on_terminal: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(*variable)
    if variable[0] == "RANK":
        monkeypatch.setenv("WORLD_SIZE", "2")
    text = f"a_while(); print('write' in vars(sys.stdout), _thread._count() - {_thread._count()})"
    raw = on_terminal(text + END, *arguments, "-o", "out.json")
    assert screen(raw, WIDTH)[0] == "False 1"  # the one that reads
    assert "waiting" not in raw


ASKING = """
import os, signal, sys, threading, time
print(threading.active_count())
while not os.path.exists("go"):
    pass
# Who waits for a signal, waits for it in all threads.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.kill(os.getpid(), signal.SIGUSR1)
signal.sigwait({signal.SIGUSR1})
print("hello", input("name? "))
time.sleep(600)
"""


def test_each_side_of_a_comparison_tells_what_it_waits_for(tmp_path: Path) -> None:
    wait = "shown('A: waiting for backward call 1')\n"
    for name in "ab":  # B finds what A has left
        (tmp_path / f"{name}.py").write_text(f"{HEAD}{wait}print({name!r})\n{END}")
    with _seen(tmp_path) as (_, follower):
        subprocess.run(
            [forkserver.gradscope(), "diff", "a.py", "b.py"],
            cwd=tmp_path,
            env={**os.environ, "TERM": "xterm"},
            stdout=follower,
            stderr=follower,
            check=True,
        )
    left = screen((tmp_path / "seen").read_bytes().decode(), WIDTH)
    assert left[:3] == ["a", "b", "A  a.py · 3 nodes · 1 leaf"]


QUICK = """
from gradscope.cli import entry, progress
progress.DELAY, progress.PERIOD = 0.0, 0.01
entry()
"""


def test_a_person_may_answer_and_interrupt(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(ASKING)
    told = "waiting for backward call 1"
    with _seen(tmp_path, 40) as (leader, follower):

        def own_terminal() -> None:
            hear_ctrl_c()
            ioctl(0, TIOCSCTTY, 0)

        with subprocess.Popen(
            [sys.executable, "-c", QUICK, "trace", "program.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
            preexec_fn=own_terminal,
        ) as process:
            _wait_for(process, tmp_path, told)
            (tmp_path / "go").touch()
            _wait_for(process, tmp_path, "name? ")
            time.sleep(0.2)
            os.write(leader, b"Ada\n")
            _wait_for(process, tmp_path, "hello Ada")
            _wait_for(process, tmp_path, told, after="hello Ada")
            os.write(leader, b"\x03")
            process.wait(timeout=60)
    assert process.returncode == -signal.SIGINT
    left = screen((tmp_path / "seen").read_bytes().decode(), 40)
    assert left[:4] == ["1", "name? Ada", "hello Ada", "Traceback (most recent call last):"]
    assert left[-1] == "KeyboardInterrupt"


def _wait_for(process: subprocess.Popen[bytes], folder: Path, words: str, after: str = "") -> None:
    while words not in (folder / "seen").read_text().rpartition(after or "\0")[2]:
        assert process.poll() is None, process.returncode
