"""The doctor as a command: outputs, options, exit statuses, saved reports, terminals, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import textwrap
from dataclasses import dataclass

import pytest
import torch

from gradscope.formats import DIAGNOSES
from gradscope.model.observations import Stopped
from gradscope.model.request import HANDFUL, Examination
from gradscope.running.session import run
from gradscope.target import Program, parse_target
from tests import forkserver
from tests.looking import Session, own_words
from tests.terminals import shown_by

LEAF = "import torch\nw = torch.zeros(3, requires_grad=True)\n"
SICK = LEAF + "loss = w.sqrt().sum()\nloss.backward()\n"
HEALTHY = LEAF + "loss = w.exp().sum()\nloss.backward()\n"
TRAINING = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("ready", flush=True)
for step in range({steps}):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 2)).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


def trained(steps: int) -> str:
    """A training of so many steps."""
    return TRAINING.format(steps=steps)


READY = "    if step == 3:\n        print('ready', flush=True)\n"
ENDLESS = trained(10**9).replace('print("ready", flush=True)\n', "") + READY


# ---------------------------------------------------------------- options and exit statuses


@dataclass(frozen=True)
class Run:
    """A program, options, and what must come of them."""

    program: str
    options: str = ""
    status: int = 0
    out: str = ""
    err: str = ""


RUNS = {
    "clean": Run(HEALTHY, "", 0, "no findings · 1 backward call watched"),
    "an error": Run(SICK, "", 1, "GS102 nonfinite-backward · error · program.py:3 · w.sqrt()"),
    "ignored by code, and not stopped for it": Run(
        SICK + "print('further')\n", "--ignore GS102", 0, "further\nno findings"
    ),
    "ignoring a typo": Run(
        SICK, "--ignore GS1022", 2, "", "did you mean GS102 nonfinite-backward?"
    ),
    "ignoring nonsense": Run(SICK, "--ignore zzz", 2, "", "gradscope rule lists them all"),
    "all steps": Run(trained(7), "--steps all", 0, "7 backward calls watched"),
    "as many as there are": Run(
        trained(9), "", 0, "no findings · 9 backward calls watched, 3 of them briefly\n"
    ),
    "one step": Run(
        trained(7),
        "--steps 1",
        0,
        "1 backward call watched · stopped as asked; the program had not ended\n",
    ),
    "a moment": Run(
        trained(9),
        "--for 0.000001",
        0,
        "1 backward call watched · stopped after 1e-06 s; the program had not ended\n",
    ),
    "steps, and a moment before them": Run(
        trained(9), "--for .000001s --steps all", 0, "stopped after 1e-06 s"
    ),
    "no time": Run(SICK, "--for 0", 2, "", "'0' is not a duration"),
    "words for time": Run(SICK, "--for ever", 2, "", "write 90s, 10m or 1h"),
    "an endless time": Run(SICK, f"--for {'9' * 400}", 2, "", "is not a duration"),
    "no steps": Run(SICK, "--steps 0", 2, "", "'0' is neither a positive number nor all"),
    "an unknown severity": Run(SICK, "--fail-on nope", 2, "", "'nope' is not one of"),
    "stopped at the finding": Run(
        SICK + "print('further')\n", "", 1, "stopped at a serious finding: --keep-going goes on"
    ),
    "two calls from one on": Run(
        trained(7) + "print('further')\n",
        "--call 3 --steps 2",
        0,
        "ready\nno findings · 2 backward calls watched · stopped as asked",
    ),
    "a call of its own number": Run(
        trained(4) + SICK, "--call 3 --width 200", 1, "these were seen in call 5"
    ),
    "running on": Run(
        trained(3) + SICK + "print('further')\n",
        "--steps 2 --run-on",
        0,
        "further\nno findings · 2 backward calls watched · watched as asked; the program ran on",
    ),
    "running on after an error": Run(SICK + "print('further')\n", "--run-on", 1, "further\n"),
    "a call that never comes": Run(HEALTHY, "--call 2", 2, "", "--call takes 1\n"),
    "going on": Run(SICK + "print('further')\n", "--keep-going", 1, "further\n"),
    "the program's own status": Run(
        SICK + "import sys; sys.exit(3)\n", "--keep-going", 3, "1 error"
    ),
    "a clean program's own status": Run(HEALTHY + "raise SystemExit(4)\n", "", 4, "no findings"),
    "a message for an exit": Run(HEALTHY + "raise SystemExit('bye')\n", "", 1, "", "bye\n"),
}


@pytest.mark.parametrize("name", RUNS)
def test_options_and_exit_statuses(name: str, session: Session) -> None:
    run = RUNS[name]
    done = session.cli("doctor", str(session.write(run.program)), *shlex.split(run.options))
    assert done.status == run.status, done
    assert run.out in done.out
    assert run.err in done.err
    assert "Traceback" not in done.err
    assert ("further" in done.out) == ("further" in run.out)
    if run.status == 2:
        assert done.out == ""


@pytest.mark.parametrize(
    "hooked",
    [
        "say = lambda tensor: (print('heard'), tensor)[1]\n"
        "with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, say):\n"
        "    loss = (w * w).sum()\n",
        "product = w * w\nproduct.register_hook(lambda _: print('heard'))\nloss = product.sum()\n",
    ],
    ids=["saved tensors", "tensor"],
)
def test_hooks_do_not_run_where_the_program_calls_no_backward(
    hooked: str, session: Session
) -> None:
    if "saved" in hooked and not hasattr(torch._C._autograd.SavedTensor, "unpack_hook"):
        pytest.skip("docs/unchanged.md: older versions of torch do not tell of such hooks")
    done = session.cli("doctor", str(session.write(LEAF + hooked)))
    assert "heard" not in done.out
    assert "no gradient was sent through it: it would run hooks of the program" in " ".join(
        done.out.split()
    )


def test_a_program_that_was_stopped_is_told_in_every_format(session: Session) -> None:
    def stopped_by(*options: str) -> object:
        done = session.cli("doctor", "program.py", "--format", "json", *options)
        return json.loads(done.out[done.out.index("{") :])["report"]["stopped"]

    session.write(trained(9))
    words = "stopped as asked; the program had not ended"
    text = session.cli("doctor", "program.py", "--steps", "2", "-o", "saved.json")
    github = session.cli("doctor", "program.py", "--steps", "2", "--format", "github")
    assert (text.status, words in text.out) == (0, True)
    assert github.err == f"gradscope: {words}\n"
    assert words in session.cli("doctor", "saved.json").out
    assert stopped_by("--steps", "2") == {"by": "steps"}
    assert stopped_by("--for", "0.000001") == {"by": "time", "seconds": 1e-6}
    assert stopped_by() is None
    session.write(SICK + "w.exp().sum().backward()\n")
    assert stopped_by() == {"by": "finding"}


def test_unasked_a_handful_of_calls_is_watched_however_long_they_take(session: Session) -> None:
    target = parse_target(str(session.write(trained(9))), ())
    asked = Examination(seconds=1e-6, least=HANDFUL)
    report = run(Program.prepare(target), asked).report
    assert report is not None and report.observations is not None
    assert report.observations.watched == HANDFUL
    assert report.observations.stopped == Stopped("time", 1e-6)


# ---------------------------------------------------------------- the machine formats


ANNOTATION = re.compile(r"::(error|warning|notice) ((?:\w+=[^,:\r\n]*,?)+)::([^\r\n]*)")


def _annotation(line: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command as the runner of GitHub Actions does."""
    match = ANNOTATION.fullmatch(line)
    assert match is not None, line
    given = dict(part.split("=", 1) for part in match[2].split(","))
    return match[1], {key: _unescaped(text) for key, text in given.items()}, _unescaped(match[3])


def _unescaped(text: str) -> str:
    for code, character in {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}.items():
        text = text.replace(code, character)
    return text


def test_annotations_are_read_back_by_github_as_they_were_meant(session: Session) -> None:
    name = "odd, name: 100%.py"
    session.write(SICK, name)
    done = session.cli("doctor", name, "--format", "github")
    (line,) = done.out.splitlines()
    level, given, message = _annotation(line)
    assert level == "error"
    assert given == {"file": name, "line": "3", "title": "GS102 nonfinite-backward"}
    assert message.startswith(
        "Backward of `w.sqrt()` turns a finite gradient into NaN or infinity.\n"
    )
    assert done.status == 1


def test_annotations_of_code_that_is_in_no_file_name_none(session: Session) -> None:
    done = session.cli(
        *("doctor", "-c", "sqrt(w).sum().backward()", "--let", "w=[0]", "--format", "github")
    )
    _, given, _ = _annotation(done.out.strip())
    assert given == {"title": "GS102 nonfinite-backward · <string>:1"}


# ---------------------------------------------------------------- saved reports


@pytest.mark.parametrize("format_name", DIAGNOSES)
def test_a_saved_report_gives_the_same_findings(format_name: str, session: Session) -> None:
    how = ("--format", format_name, "--fail-on", "error")
    first = session.cli("doctor", str(session.write(SICK)), "-o", "saved.json.gz", *how)
    again = session.cli("doctor", "saved.json.gz", *how)
    # What is no format of a terminal has it in a remark.
    *stopped, wrote = first.err.splitlines(keepends=True)
    assert wrote == "gradscope: wrote saved.json.gz\n"
    assert (again.status, again.out, again.err) == (first.status, first.out, "".join(stopped))


def test_a_saved_report_shows_its_findings(session: Session) -> None:
    session.cli("doctor", str(session.write(SICK)), "-o", "saved.json")
    tree = session.cli("show", "saved.json").out
    assert tree.splitlines()[1] == "✖ GS102 nonfinite-backward · error · program.py:3 · w.sqrt()"
    assert "✖ ○ Sqrt" in tree
    shown = json.loads(session.cli("show", "saved.json", "--format", "json").out)
    assert shown["findings"][0]["rule"] == "GS102"
    assert "GS102" in session.cli("show", "saved.json", "--format", "dot").out


# ---------------------------------------------------------------- programs with little to see


ANSWERS = {
    "never calls backward": (
        LEAF + "loss = w.exp().sum()\n",
        0,
        "the program never called backward; the doctor examined the result that it left\n",
    ),
    "never calls backward, and is sick": (LEAF + "loss = w.log().sum()\n", 1, "GS101"),
    "no leaf": (
        "import torch\nloss = torch.ones(2).sum()\n",
        2,
        "no tensor of the program requires grad",
    ),
    "keeps nothing": (
        LEAF + "with torch.no_grad():\n    w.exp().sum()\n",
        2,
        "never called backward in this process, and kept no result that requires grad",
    ),
    "dies before its first op": (
        "import torch\n1 / 0\n",
        1,
        "the program ended with ZeroDivisionError before any backward call\nno findings\n",
    ),
    "is not python": ("x = (\n", 1, "SyntaxError: '(' was never closed"),
    "dies in the middle of forward": (
        "import torch\nfrom torch import nn\n"
        "net = nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 3), nn.Linear(3, 1))\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nnet(torch.ones(1, 2))\n",
        1,
        "the doctor examined the last result it had made by then",
    ),
    "a call of a thread itself": (
        LEAF + "import threading\nt = threading.Thread(target=w.exp().sum().backward, name='one')\n"
        "t.start(); t.join()\n",
        2,
        "1 backward call was made in another thread, which is not watched: one\n",
    ),
    "another thread as well": (
        LEAF + "import threading\ndef work():\n    w.exp().sum().backward()\n"
        "t = threading.Thread(target=work, name='one'); t.start(); t.join()\n"
        "w.exp().sum().backward()\n",
        0,
        "1 backward call was made in another thread, which is not watched: one at "
        "program.py:5\nno findings · 1 backward call watched",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_there_is_always_a_clear_answer(name: str, session: Session) -> None:
    program, status, said = ANSWERS[name]
    done = session.told(program, "doctor")
    assert done.status == status, done
    # Long sentences are wrapped.
    assert " ".join(said.split()) in " ".join((done.out + done.err).split())
    assert "GS301" not in done.out


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("exit(0)", "did not import torch"),
        ("import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\n", "loads torch in"),
    ],
)
def test_a_program_without_torch(program: str, why: str, fresh: Session) -> None:
    done = fresh.told(program, "doctor")
    assert done.status == 2
    assert f"gradscope: no autograd graph: the program {why}" in done.err


def test_a_backward_in_a_forked_process_is_its_own_affair(process: Session) -> None:
    process.write(
        LEAF + "import os\nif (child := os.fork()) == 0:\n    w.exp().sum().backward()\n"
        "    print('child', w.grad, flush=True)\n    os._exit(0)\nos.waitpid(child, 0)\n"
    )
    done = process.cli("doctor", "program.py")
    assert "child tensor([1., 1., 1.])" in done.out
    assert "child processes is not watched" in done.err
    assert done.status == 2


# ---------------------------------------------------------------- ends from outside


def until_interrupted(ending: str) -> str:
    """A program that trains until somebody presses Ctrl-C, and then does this."""
    head, start, loop = ENDLESS.partition("for step in ")
    return f"{head}try:\n{textwrap.indent(start + loop, '    ')}{ending}"


CATCHING = """except KeyboardInterrupt:
    torch.save(model.state_dict(), "model.pt")
    print("saved")
"""

TIDYING = """finally:
    import time
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(("program", "signals"), [(ENDLESS, 1), (until_interrupted(TIDYING), 2)])
def test_ctrl_c_ends_as_python_ends_and_tells_what_was_seen(
    program: str, signals: int, process: Session
) -> None:
    status, out, err = _interrupted(process, program, [signal.SIGINT] * signals)
    assert status == -signal.SIGINT
    assert err.startswith("Traceback (most recent call last):\n")
    assert err.endswith("KeyboardInterrupt\n")
    assert err.count("\nKeyboardInterrupt\n") == signals
    assert not own_words(err)
    assert re.search(r"interrupted after \d+ backward calls\nno findings · [\d,]+ backward", out)


def test_a_program_that_catches_ctrl_c_ends_as_it_likes(process: Session) -> None:
    program = until_interrupted(CATCHING)
    status, out, err = _interrupted(process, program, [signal.SIGINT])
    assert (status, err) == (0, "")
    assert out.startswith("saved\nno findings · ")
    assert (process.folder / "model.pt").exists()


def test_a_terminated_run_leaves_the_old_file_as_it_was(process: Session) -> None:
    process.write("old", "report.json")
    status, out, err = _interrupted(
        process, ENDLESS, [signal.SIGTERM], "-o", "report.json", "--format", "json"
    )
    assert (status, out, err) == (-signal.SIGTERM, "", "")
    assert (process.folder / "report.json").read_text() == "old"
    left = {path.name for path in process.folder.iterdir()}
    assert left == {"program.py", "report.json"}


def _interrupted(
    user: Session, program: str, signals: list[signal.Signals], *options: str
) -> tuple[int, str, str]:
    """Send each signal to a doctor whose program has said that it is ready."""
    user.write(program)
    with subprocess.Popen(
        [forkserver.gradscope(), "doctor", "program.py", "--steps", "all", *options],
        cwd=user.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            stream = process.stderr if "json" in options else process.stdout
            for one in signals:
                assert stream is not None and stream.readline() == "ready\n"
                process.send_signal(one)
            out, err = process.communicate(timeout=120)
        finally:
            process.terminate()  # one that has not ended would never
    return process.returncode, out, err


# ---------------------------------------------------------------- on a terminal


def test_findings_are_coloured_on_a_terminal_only(process: Session) -> None:
    process.write(SICK)
    # The text before the reset is the head of the finding.
    assert "\x1b[1;38;2;208;50;122m✖ GS102" in _on_terminal(process, COLORTERM="truecolor")
    assert "\x1b[1" not in _on_terminal(process, NO_COLOR="1")
    done = process.cli("doctor", "program.py")
    assert "\x1b" not in done.out + done.err


def _on_terminal(user: Session, **environment: str) -> str:
    """All that a doctor writes to a terminal of which only this is known."""
    ways = ("COLUMNS", "NO_COLOR", "TERM", "COLORTERM", "FORCE_COLOR")
    kept = {key: text for key, text in os.environ.items() if key not in ways}
    command = [forkserver.gradscope(), "doctor", "program.py"]
    return shown_by(command, user.folder, {**kept, "TERM": "xterm", **environment})


# ---------------------------------------------------------------- single programs

CLIPPED_WHILE_SCALED = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for _ in range(4):
    optimizer.zero_grad()
    loss = (model(torch.randn(8, 4)) - torch.randn(8, 1)).pow(2).mean()
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""


def test_the_last_line_counts_in_the_words_of_the_findings_and_names_the_worst(
    session: Session,
) -> None:
    text = CLIPPED_WHILE_SCALED.replace(
        "for _ in range(4):\n", "model.bias.register_hook(lambda g: g * 0.5)\nfor _ in range(4):\n"
    )
    done = session.cli("doctor", str(session.write(text)))
    last = done.out.splitlines()[-1]
    assert "1 warning, 1 information · " in last
    assert "GS504 gradient-altered · information" in done.out
    assert last.endswith("more: gradscope rule GS506")
