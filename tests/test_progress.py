"""What a person at a terminal is told while waiting, and that it is never in anyone's way."""

from __future__ import annotations

import _thread
import io
import os
import sys
from collections.abc import Callable
from threading import Thread

import pytest

from gradscope.cli import terminal
from tests.looking import Session
from tests.terminals import open_terminal, read

HEAD = "import os, sys, _thread\nimport torch\nw = torch.ones(3, requires_grad=True)\n"
END = "\n(w * w).sum().backward()\n"

Command = Callable[..., str]


@pytest.fixture
def on_terminal(session: Session, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command on a terminal, where nobody waits for a line; all that it wrote there."""
    monkeypatch.setattr(terminal, "PAUSE", 0.0)

    def run(text: str, *arguments: str, command: str = "backward") -> str:
        session.write(HEAD + text)
        leader, follower = open_terminal(100)
        written: list[bytes] = []
        reader = Thread(target=lambda: written.extend(iter(lambda: read(leader), b"")))
        reader.start()
        raw = io.FileIO(follower, "wb")
        stream = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", line_buffering=True)
        with stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            patch.setattr(sys, "stderr", stream)
            session.cli(command, "program.py", *arguments)
        reader.join()
        os.close(leader)
        return b"".join(written).decode().replace("\r\n", "\n")

    return run


@pytest.mark.parametrize("command", ["trace", "backward", "check", "memory", "doctor", "depends"])
def test_every_command_tells_what_it_waits_for(command: str, on_terminal: Command) -> None:
    on = ("--on", "w") if command == "depends" else ()
    lines = on_terminal(f"print('printed'){END}", *on, command=command).split("\n")
    before = lines[: lines.index("printed")]
    assert "gradscope: waiting for backward call 1" in before


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
    twice = "for _ in range(2):\n    (w * w).sum().backward()\n"
    raw = on_terminal(f"{twice}late = w * 2{END}{END}", *arguments, "-o", "out.json")
    assert f"gradscope: {told}\n" in raw


def test_the_doctor_tells_each_step(on_terminal: Command) -> None:
    raw = on_terminal(f"{END}print('done')\n", command="doctor")
    assert "gradscope: step 1, loss 3, gradient norm 3.46\n" in raw.partition("done")[0]


def test_a_line_comes_seldom(on_terminal: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(terminal, "monotonic", lambda: next(clock))
    monkeypatch.setattr(terminal, "PAUSE", 10)
    many = "for _ in range(20):\n    (w * w).sum().backward()\n    w.grad = None\n"
    raw = on_terminal(many, "--call", "19", "--run-on", "-o", "out.json")
    # Of every ten moments the last is told.
    assert raw.count("gradscope: waiting for") == 1
    assert "gradscope: waiting for backward call 19, 9 made\n" in raw


def test_the_streams_of_the_program_are_as_without_us(on_terminal: Command) -> None:
    own = (
        "import io\nheard = sys.stderr = io.StringIO()\n"
        f"print('write' in vars(sys.stdout), _thread._count() - {_thread._count() + 1})"
        f"{END}print([heard.getvalue()])"
    )
    raw = on_terminal(own, "--call", "2", "-o", "out.json")
    assert "\nFalse 0\n" in raw
    assert "\n['']\n" in raw
    assert "gradscope: waiting for backward call 2\n" in raw


@pytest.mark.parametrize(
    ("arguments", "variables"), [(("-q",), {}), ((), {"RANK": "0", "WORLD_SIZE": "2"})]
)
def test_where_it_is_not_wanted_nothing_is_told(
    arguments: tuple[str, ...],
    variables: dict[str, str],
    on_terminal: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert "waiting" not in on_terminal(END, *arguments, "-o", "out.json")


def test_a_training_tells_a_row_now_and_then(
    on_terminal: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = (
        "optimizer = torch.optim.SGD([w], lr=0.1)\n"
        "for _ in range(3):\n    optimizer.zero_grad()\n    (w * w).sum().backward()\n"
        "    optimizer.step()\nprint('done')\n"
    )
    raw = on_terminal(loop, "--every", "1", command="watch")
    assert "gradscope: step 2, loss " in raw.partition("done")[0]
    assert "norm by step" in raw.partition("done")[2]
    monkeypatch.setattr(terminal, "PAUSE", 3600.0)
    assert "gradscope: step" not in on_terminal(loop, "--every", "1", command="watch")
