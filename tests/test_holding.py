"""A run that waits at what is found in it: asked from elsewhere, and not changed by that."""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gradscope.model import storage
from tests import forkserver
from tests.looking import Done, Session, own_words

PROGRAM = """
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(net.parameters())
for step in range(4):
    x, target = torch.randn(5, 3), torch.rand(5, 1)
    optimizer.zero_grad()
    out = torch.nn.functional.dropout(net(x), 0.2)
    if step == 1:
        target = target[:, 0]
    loss = torch.nn.functional.mse_loss(out, target)
    if step == 2:
        loss = loss + torch.where(out > 0, (out * (out > 0)).sqrt(), out).sum()
    loss.backward()
    print([one.grad.view(torch.int32).tolist() for one in net.parameters()])
    for one in net.parameters():
        one.grad.nan_to_num_()
    optimizer.step()
print([one.view(torch.int32).tolist() for one in net.parameters()])
print(torch.rand(3).tolist())
"""


@pytest.fixture(autouse=True)
def _short_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sockets have short names, and are nobody else's."""
    folder = tempfile.mkdtemp(prefix="gs-")
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    yield
    shutil.rmtree(folder)


@contextmanager
def held(
    session: Session, *options: str, command: str = "doctor", program: str = PROGRAM
) -> Iterator[subprocess.Popen[str]]:
    """A run of the program that waits by now."""
    words = [forkserver.gradscope(), command, "--hold", "program.py", *options]
    session.write(program)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=session.folder, stdout=pipe, stderr=pipe, text=True, env={**os.environ}
    ) as run:
        while session.cli("ask").status and run.poll() is None:
            time.sleep(0.05)
        try:
            yield run
        finally:
            run.kill()  # else a test that fails would wait for it


def where() -> Path:
    """The socket of the one run that waits."""
    (place,) = Path(os.environ["XDG_RUNTIME_DIR"], f"gradscope-{os.getuid()}").iterdir()
    return place


def test_a_run_that_waits_is_asked_and_goes_on_unchanged(session: Session) -> None:
    """All questions, the second finding after next, and the end."""
    plain = io.StringIO()
    with contextlib.redirect_stdout(plain), contextlib.suppress(UserWarning):
        runpy.run_path(str(session.write(PROGRAM)))
    with held(session) as run:
        asked = session.cli("ask", "status")
        first, finding, last = asked.out.splitlines()
        assert first.startswith("program.py waits in backward call 2 (pid ")
        assert finding.startswith("▲ GS503 loss-broadcasts · warning · program.py:12 · ")
        assert last == "ask findings, tree, table or explain; next goes on, stop ends the run"
        assert session.cli("ask", "json", "-o", "saved.json").status == 0
        report = storage.load(session.folder / "saved.json")
        assert report.passes[0].number == 2
        assert [one.rule for one in report.findings] == ["GS503"]
        for question, same in (
            (("tree", "--focus", "0", "--depth", "1"), ("show",)),
            (("table", "--sort", "gradient"), ("show", "--format", "table")),
            (("findings", "--format", "gcc"), ("doctor",)),
        ):
            rest = question[1:]
            told = session.cli("ask", *question)
            assert told == session.cli(same[0], "saved.json", *same[1:], *rest)
            assert "GS503" in told.out or question[0] == "table"
        explained = session.cli("ask", "explain", "--leaf", "0.weight").out
        anew = session.cli("explain", "program.py", "--call", "2", "--leaf", "0.weight").out
        assert "Step by step" in explained
        assert anew.endswith(explained)
        assert session.cli("ask", "explain").out.count("● ") == 4
        misused = session.cli("ask", "tree", "--foucs", "x")
        assert misused == session.cli("show", "saved.json", "--foucs", "x")
        assert "--focus" in misused.err
        gone_on = session.cli("ask", "next")
        assert gone_on.status == 0
        assert "waits in backward call 3" in gone_on.out
        assert "GS102" in gone_on.out
        assert "GS503" not in gone_on.out  # it is known
        assert run.poll() is None
        ended = session.cli("ask", "next")
        assert (ended.status, ended.err) == (1, "gradscope: the run has ended\n")
        out, err = run.communicate(timeout=60)
    assert out.startswith(plain.getvalue())
    assert "1 of 4 backward calls brought NaN or infinity that no step has used" in out
    assert err.count("in another terminal, here: gradscope ask\n") == 2
    assert run.returncode == 1
    assert not list(where_held().iterdir())


def where_held() -> Path:
    """The folder of the sockets."""
    return Path(os.environ["XDG_RUNTIME_DIR"], f"gradscope-{os.getuid()}")


SPOILED_LATE = """
import torch
torch.manual_seed(0)
w = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(1, 25):
    loss = (w * torch.rand(3) * (step < 20)).sqrt().sum()
    optimizer.zero_grad()
    loss.backward()
    if w.grad.isfinite().all():
        optimizer.step()
print(w.view(torch.int32).tolist(), torch.rand(3).tolist())
"""


def test_a_training_that_is_watched_waits_where_the_doctor_finds_something(
    session: Session,
) -> None:
    plain = io.StringIO()
    with contextlib.redirect_stdout(plain):
        runpy.run_path(str(session.write(SPOILED_LATE)))
    with held(session, "--every", "2", "-q", command="watch", program=SPOILED_LATE) as run:
        asked = session.cli("ask", "findings")
        assert "GS102" in asked.out
        assert "program.py:6" in asked.out
        assert "waits in backward call 23" in session.cli("ask").out
        assert "✖ [nan, nan, nan]" in session.cli("ask", "tree").out
        assert "Leaf by leaf" in session.cli("ask", "explain").out
        assert session.cli("ask", "next").err == "gradscope: the run has ended\n"
        out, err = run.communicate(timeout=60)
    assert out.startswith(plain.getvalue())
    assert "waits in backward call" in err
    with held(session, "--every", "2", "-q", command="watch", program=SPOILED_LATE) as run:
        assert session.cli("ask", "stop").status == 0
        assert run.communicate(timeout=60)[1].rstrip().endswith("KeyboardInterrupt")


def test_stop_ends_it_as_ctrl_c_does_and_the_protocol_is_plain(session: Session) -> None:
    """The report is written before stop is answered; nothing but the known questions is."""
    with held(session, "-o", "saved.json") as run:
        place = where()
        assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        with socket.socket(socket.AF_UNIX) as way:
            way.connect(str(place))
            lines = way.makefile("rwb")

            def ask(line: bytes) -> Any:
                lines.write(line + b"\n")
                lines.flush()
                return json.loads(lines.readline())

            status = ask(b'{"question": "status"}')["answer"]
            assert (status["call"], status["target"]) == (2, "program.py")
            assert status["folder"] == str(session.folder)
            assert status["findings"][0].startswith("▲ GS503 loss-broadcasts · warning")
            for wrong in (b"status", b"[]", b"{}", b'{"question": 1}', b"\xff", b"[" * 9_000):
                assert "one JSON object a line" in ask(wrong)["hint"], wrong
            unknown = ask(b'{"question": "__import__(\'os\')"}')
            assert unknown["error"].startswith("no such question: ")
            assert unknown["hint"].endswith("status, report, next, stop")
            assert ask(b'{"question": "report"}')["answer"]["passes"][0]["number"] == 2
            lines.close()
        assert not (session.folder / "saved.json").exists()
        code = (
            "import sys; from gradscope.cli.entry import run; "
            "run(['ask', 'tree']); run(['ask', 'explain']); print('torch' in sys.modules)"
        )
        asking = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert asking.stdout.endswith("\nFalse\n"), asking
        stopped = session.cli("ask", "--pid", str(status["pid"]), "stop")
        assert (stopped.status, stopped.err) == (0, "gradscope: the run has ended\n")
        assert storage.load(session.folder / "saved.json").findings[0].rule == "GS503"
        out, err = run.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert not own_words(err.partition("Traceback")[2].partition("\ngradscope: ")[0])
    assert "the program was interrupted after 2 backward calls" in out
    assert run.returncode == -signal.SIGINT


def test_ctrl_c_ends_it_and_a_killed_one_leaves_nothing(session: Session) -> None:
    """And another folder sees neither."""
    with held(session, "--fail-on", "error") as run:
        place = where()
        pid = int(place.name.partition("-")[2])
        assert "waits in backward call 3" in session.cli("ask").out
        elsewhere = session.folder / "elsewhere"
        elsewhere.mkdir()
        os.chdir(elsewhere)
        assert "no run waits in this folder" in session.cli("ask").err
        assert session.cli("ask", "--pid", str(pid)).status == 0
        assert session.cli("ask", "--pid", "1", "tree").status == 2
        os.chdir(session.folder)
        os.kill(pid, signal.SIGINT)
        out, err = run.communicate(timeout=60)
        assert "interrupted after 3" in out
        traceback = err.partition("Traceback")[2].splitlines()
        # Since Python 3.13 a call is underlined.
        assert [line.strip() for line in traceback[1:] if line.strip(" ~^")] == [
            f'File "{session.folder}/program.py", line 15, in <module>',
            "loss.backward()",
            "KeyboardInterrupt",
        ]
        assert not place.exists()
    # What is left of one that was killed.
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    assert place.exists()
    none = session.cli("ask", "tree")
    assert none.status == 2
    assert none.err.startswith(
        "gradscope: no run waits in this folder\ngradscope: gradscope doctor"
    )
    assert not place.exists()


def loose(folder: Path, _: pytest.MonkeyPatch) -> None:
    """Others may read what is in the folder of the sockets."""
    folder.mkdir()
    folder.chmod(0o755)


def linked(folder: Path, _: pytest.MonkeyPatch) -> None:
    """Somebody has put a link there."""
    folder.symlink_to(tempfile.gettempdir())


def ranked(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher has started several."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")


def long(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the folder is longer than that of a socket may be."""
    name = Path(os.environ["XDG_RUNTIME_DIR"], "x" * 99)
    name.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(name))


def without(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.setattr("gradscope.holding.AF_UNIX", None)


@pytest.mark.parametrize(
    ("prepare", "words", "status"),
    [
        (loose, "is not a folder that only you can read", 2),
        (linked, "is not a folder that only you can read", 2),
        (ranked, "--hold: this is rank 0 of 2", 2),
        (long, "is too long for the name of a socket", 2),
        (without, "python has no Unix sockets on this system", 3),
    ],
)
def test_where_nobody_could_ask_nothing_runs(
    prepare: Callable[[Path, pytest.MonkeyPatch], None],
    words: str,
    status: int,
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepare(where_held(), monkeypatch)
    session.write("print('it ran')")
    done = session.cli("doctor", "--hold", "program.py")
    assert (done.status, done.out) == (status, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 2
    asked = session.cli("ask", "tree")
    assert asked.status in (2, status)
    assert len(asked.err.splitlines()) == 2
    if prepare is not ranked:
        assert words in asked.err


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (("why",), "'why' is not one of 'status', 'findings', 'explain', 'tree', 'code',"),
        (("next", "--now"), "next takes no options, and not --now"),
        (("explain", "--leaf"), "Option '--leaf' requires an argument"),
        (("tree", "other.json"), "Got unexpected extra argument (other.json)"),
        (("findings", "train.py"), "Got unexpected extra argument (train.py)"),
    ],
)
def test_a_wrong_question_is_told_before_anybody_is_asked(
    question: tuple[str, ...], words: str, session: Session
) -> None:
    done: Done = session.cli("ask", *question)
    assert done.status == 2
    assert words in done.err
