"""The command line as a whole process: targets, outputs, errors, exit statuses."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gradscope.render.words.text import UNICODE
from gradscope.words import SIGNS
from tests import forkserver
from tests.forkserver import client
from tests.fuzz.process import ran
from tests.looking import Session
from tests.terminals import shown_by

EXAMPLES = Path(__file__).parent.parent / "examples"
Run = Callable[..., "subprocess.CompletedProcess[str]"]

GRAPH = "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n"
LOSS = GRAPH + "loss = (x * x).sum()\nprint('half way')\nloss.backward()\nprint('not reached')\n"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command in an empty folder of its own, with a cache of its own."""

    def run_in_folder(
        *arguments: str,
        command: tuple[str, ...] = (sys.executable,),
        stdin: str = "",
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        known = {
            **os.environ,
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "COLUMNS": "100",
            "PYTHONPATH": str(EXAMPLES.parent),
            **environment,
        }
        return ran([*command, *arguments], tmp_path, known, stdin)

    return run_in_folder


@pytest.fixture
def gradscope(run: Run, tmp_path: Path) -> Run:
    """Run gradscope in that folder, in a fork of a process that has imported all.

    What is asked here does not depend on how python starts."""
    command = tmp_path.parent / f"{tmp_path.name}-gradscope"
    client(command)
    return lambda *arguments, **rest: run(*arguments, command=(str(command),), **rest)


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What gradscope itself wrote to stderr."""
    lines = done.stderr.splitlines()
    return [line.removeprefix("gradscope: ") for line in lines if line.startswith("gradscope: ")]


def test_every_kind_of_target(gradscope: Run, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(LOSS + "def f():\n    return (x ** 3).sum()\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "__main__.py").write_text(LOSS)
    functions = tmp_path / "functions.py"
    functions.write_text(GRAPH + "def f():\n    return {'loss': (x ** 3).sum()}\n")
    for arguments, stdin in [
        (("prog.py",), ""),
        (("-m", "pack"), ""),
        (("-c", LOSS), ""),
        (("-",), LOSS),
        (("functions.py::f",), ""),
        (("-c", "(x ** 2).sum()", "--let", "x=[1,2]"), ""),
    ]:
        done = gradscope("backward", *arguments, "--format", "json", stdin=stdin)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["format"] == "gradscope/1"
        assert "not reached" not in done.stderr


def test_the_last_target_runs_again(gradscope: Run) -> None:
    none = gradscope("backward")
    assert (none.returncode, len(said(none))) == (2, 2)
    first = gradscope("trace", str(EXAMPLES / "weights.py"))
    again = gradscope("backward", "--gradient", "[0.1,1,0.0001]")
    assert first.returncode == again.returncode == 0
    assert "weights.py" in said(again)[0]
    assert "[0.6, 8, 0.001] + [0.6, 8, 0.001] = [1.2, 16, 0.002]" in again.stdout
    for label in ("3*a", "2*b", "2*b*b", "3*a + 2*b*b", "torch.log(c)"):
        assert f" {label} " in again.stdout


def test_a_machine_format_on_stdout_is_alone_there(gradscope: Run, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(
        LOSS.replace("print(", "import os; os.system('echo child'); print(")
    )
    done = gradscope("backward", "prog.py", "--format", "json")
    assert json.loads(done.stdout)["graph"]["roots"][0]["label"] == "loss"
    assert "half way" in done.stderr
    assert "child" in done.stderr


def test_an_empty_script_is_a_program_without_a_graph(gradscope: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    assert gradscope("trace", "empty.py").returncode == 0
    assert gradscope("backward", "empty.py").returncode == 2
    assert gradscope("trace", "empty.py", "-o", "x.svg").returncode == 2


@pytest.mark.parametrize("place", ["missing/x.svg", ".", "x.unknown"])
def test_bad_outputs_are_found_before_the_program_runs(
    place: str, gradscope: Run, tmp_path: Path
) -> None:
    (tmp_path / "prog.py").write_text("print('it ran')")
    done = gradscope("trace", "prog.py", "-o", place)
    assert done.returncode == 2
    assert "it ran" not in done.stdout
    assert len(said(done)) == 2


def test_show_does_not_import_torch(gradscope: Run, run: Run, tmp_path: Path) -> None:
    gradscope("trace", "-c", "x * 2", "--let", "x=1", "-o", "good.json.gz")
    poisoned = tmp_path / "poison"
    poisoned.mkdir()
    (poisoned / "torch.py").write_text("raise SystemExit('torch was imported')")
    path = f"{poisoned}{os.pathsep}{EXAMPLES.parent}"
    for command in (("show", "good.json.gz"), ("--help",), ("backward", "--help"), ("--version",)):
        done = run("-m", "gradscope", *command, PYTHONPATH=path)
        assert done.returncode == 0, done.stderr


def test_a_terminal_without_unicode(gradscope: Run, run: Run) -> None:
    gradscope("trace", "-c", "(x * x).sum()", "--let", "x=[1,2]", "-o", "saved.json")
    done = run("-m", "gradscope", "show", "saved.json", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert "* x" in done.stdout
    assert done.stdout.isascii()


def test_colour_only_where_it_is_wanted(gradscope: Run) -> None:
    code = ("-c", "(x * x).sum()", "--let", "x=[1,2]")
    assert "\x1b[" not in gradscope("backward", *code).stdout
    assert "\x1b[" in gradscope("backward", *code, "--color", "always").stdout
    assert "\x1b[" not in gradscope("backward", *code, "--color", "never").stdout


def test_what_the_program_saves_or_traces_is_not_ours(
    gradscope: Run, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "prog.py").write_text(
        """
import sys, torch
from torch import nn
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x.sigmoid()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.activation, self.layer = Swish.apply, nn.Linear(3, 3)
    def forward(self, x):
        return self.activation(self.layer(x))
if sys.argv[1] == "save":
    torch.save(Net(), "model.pt")
    torch.jit.trace(nn.Linear(3, 3), torch.randn(1, 3))
else:
    print(torch.load("model.pt", weights_only=False)(torch.ones(1, 3)).shape)
"""
    )
    saved = gradscope("trace", "prog.py", "--run-on", "--", "save")
    assert saved.returncode == 0, saved.stderr
    loaded = run("prog.py", "load", command=(forkserver.script(),))
    assert loaded.stdout == "torch.Size([1, 3])\n"


@pytest.mark.parametrize(
    ("mistake", "explained"),
    [
        ("y = x * 2\ny.backward()", "as in backward(torch.ones(2))"),
        ("y = x.repeat(2, 1)\ny.backward(torch.ones(4))", "give its .reshape(2, 2)"),
        ("y = x.repeat(2, 1)\ny.backward(torch.ones(3))", "one that fits: torch.ones(2, 2)"),
        ("with torch.no_grad():\n    y = (x * 2).sum()\ny.backward()", "torch.no_grad()"),
    ],
)
def test_mistakes_in_the_programs_own_call_are_explained(
    mistake: str, explained: str, gradscope: Run, tmp_path: Path
) -> None:
    (tmp_path / "prog.py").write_text(f"{GRAPH}{mistake}\n")
    done = gradscope("backward", "prog.py")
    assert done.returncode == 1
    assert explained in " ".join((done.stdout + done.stderr).split())


def test_a_program_without_a_command(gradscope: Run, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(f"{GRAPH}x.sum().backward()\n")
    done = gradscope("prog.py", "--lr", "3")
    assert done.returncode == 2
    assert "say what to do with it: gradscope backward prog.py --lr 3" in done.stderr
    assert "say what" not in gradscope("nothing").stderr


@pytest.mark.parametrize("command", ["backward", "doctor"])
def test_a_piece_of_code_that_lacks_a_name(command: str, gradscope: Run) -> None:
    done = gradscope(command, "-c", "(w * 2).sum()")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "gradscope: --let 'w=[1,2]' makes w a leaf with these numbers"
    )


def test_the_roots_a_function_returns_are_quoted_for_a_shell(
    gradscope: Run, tmp_path: Path
) -> None:
    (tmp_path / "prog.py").write_text(f"{GRAPH}def two():\n    return {{'a': x * 2, 'b': x * 3}}\n")
    done = gradscope("trace", "prog.py::two")
    assert done.returncode == 2
    choice = said(done)[-1].partition("--root ")[2]
    assert gradscope("trace", "prog.py::two", "--root", *shlex.split(choice)).returncode == 0


@pytest.mark.parametrize("command", ["trace", "doctor"])
def test_what_is_no_program_is_not_remembered(command: str, session: Session) -> None:
    good = session.write(
        """
        import torch
        a = torch.ones(2, requires_grad=True)
        def made():
            return (a * a).sum()
        made().backward()
        """
    )
    for name in ("config.yaml", "report.json"):
        (session.folder / name).write_text("{}")
    assert session.cli(command, good.name).status == 0
    wrong = [["config.yaml"], ["report.json"], ["."], ["-m", "no_such_module"], ["program.py::no"]]
    for words in wrong:
        refused = session.cli(command, *words)
        assert refused.status == 2, refused
    again = session.cli(command)
    assert again.status == 0
    assert "running program.py again" in again.err


def on_a_terminal(user: Session, *arguments: str) -> str:
    """What a person sees of a command, of whom it is the only one."""
    return " ".join(shown_by([forkserver.gradscope(), *arguments], user.folder).split())


def test_the_signs_are_told_in_help_and_once_below_the_first_tree(process: Session) -> None:
    piped = process.told(f"{GRAPH}y = (x * x).sum()\ny.backward()\n", "trace")
    quiet = on_a_terminal(process, "trace", "program.py", "-q")
    first = on_a_terminal(process, "trace", "program.py").replace("gradscope: ", "")
    second = on_a_terminal(process, "backward", "program.py")
    told = "◇ root, where backward starts · ○ operation · ● leaf, which gets the .grad"
    assert told in first
    assert "└" in second and told not in " ".join((piped.out, piped.err, quiet, second))
    help_text = process.cli("trace", "--help").out
    for name, (sign, meaning) in SIGNS.items():
        assert getattr(UNICODE, name) == sign
        assert f"{sign}  {meaning}" in help_text
        assert f"{sign} {meaning}" in first


RESULTS = "import torch\nw = torch.ones(3, requires_grad=True)\n{}"


@pytest.mark.parametrize(
    ("lines", "chosen", "others"),
    [
        (
            "a = w * 2\nloss = w.sum()\nb = w.mean()",
            "loss, the scalar of that name",
            "a [3] program",
        ),
        ("kept = {'loss': w.sum()}\nb = w.mean()", "kept['loss'], the scalar of that name", "b []"),
        ("a = w * 2\nb = w.mean()\nc = w + 1", "b, the only scalar", "c [3] program.py:5"),
        ("a = w * 2\nc = w + 1", "c, the one made last", "a [3] program.py:3"),
        ("a = w.sum()\nc = w.mean()", "c, the one made last", "a [] program.py:3"),
    ],
)
def test_of_several_results_the_likeliest_is_shown_and_the_others_told(
    session: Session, lines: str, chosen: str, others: str
) -> None:
    session.write(RESULTS.format(lines))
    for command in ("trace", "doctor"):
        done = session.cli(command, "program.py")
        told = " ".join(done.out.split())
        assert f"this is {chosen}; the others: " in told and others in told
        assert "--root NAME shows another" in told
        assert done.status == 0


def test_of_several_results_of_a_function_one_has_to_speak_for_itself(session: Session) -> None:
    session.write(
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        def one():
            return w * 2, w.sum()
        def none():
            return w * 2, w + 1
        """
    )
    told = session.cli("trace", "program.py::one")
    assert "the target gives 2 results; this is _[1], the only scalar" in told.out
    refused = session.cli("trace", "program.py::none")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.splitlines()[-1] == "gradscope: choose one: --root '_[0]'"


def test_a_result_that_no_variable_holds_is_told_by_its_line(session: Session) -> None:
    session.write("""
        import torch
        w = torch.ones(3, requires_grad=True)
        class Box:
            __slots__ = ("held",)
        box, y = Box(), w * 2
        box.held = w.sum()
        """)
    assert "this is (no name) [] program.py:6" in session.cli("trace", "program.py").out


def test_who_has_to_give_a_gradient_is_told_of_which_result(session: Session) -> None:
    done = session.told(RESULTS.format("a = w * 2\nc = w + 1"), "backward")
    assert done.status == 2
    assert "this is c, the one made last; the others: a [3]" in done.err.splitlines()[2]
