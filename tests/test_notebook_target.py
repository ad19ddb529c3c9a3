"""A notebook as a target: its cells run as Jupyter would run them, and are named by their
numbers."""

from __future__ import annotations

import builtins
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.looking import Session, expressions, is_close, leaf_named, new_gradient, own_words
from tests.notebooks import code, notebook, text

START = "import torch\nw = torch.ones(3, requires_grad=True)"


def places(session: Session, *cells: str, command: str = "backward") -> dict[str, str]:
    """Where each expression stands."""
    target = notebook(session.folder / "a.ipynb", *cells)
    origins = session.look_at(target, command=command).graph.origins
    return {one.expression: f"{one.file}:{one.line}" for one in origins if one.expression}


def test_cells_run_in_order_and_give_the_places(session: Session) -> None:
    cells: list[str | dict[str, Any]] = [
        START,
        text("# Not code"),
        code(" \n"),
        "import asyncio\n\ndef double(t):\n    return t * 2",
        code("raise SystemError", "skip-execution"),
        "!exit 3\nawait asyncio.sleep(0)\ny = double(w)",
        "loss = (y ** 2).sum()\n\nloss.backward()",
        "raise SystemError",
    ]
    report = session.look_at(notebook(session.folder / "a.ipynb", *cells))
    assert expressions(report) == ["(y ** 2).sum()", "y ** 2", "t * 2"]
    origins = report.graph.origins
    assert [f"{one.file}:{one.line}" for one in origins[:3]] == ["In[4]:1", "In[4]:1", "In[2]:4"]
    assert is_close(new_gradient(report, "w"), [8, 8, 8])
    assert report.passes[0].origin is not None
    assert origins[report.passes[0].origin].line == 3
    assert report.meta.target.endswith("a.ipynb")


def test_a_cell_with_our_own_magic_runs_as_it_stands(session: Session) -> None:
    found = places(
        session,
        f"%load_ext gradscope\n{START}",
        "%%gradscope doctor\n\nloss = (w * 2).sum()\nloss.backward()",
    )
    assert found["(w * 2).sum()"] == "In[2]:3"


def test_code_under_a_magic_keeps_its_lines(session: Session) -> None:
    found = places(
        session,
        START,
        "%%time\n\na = w * 2\nb = a * 3",
        "# two\n%time c = b * 4\n%time d = c * 5\ne = d * 6",
        "%%capture\n%%time\nloss = e.sum()\nloss.backward()",
    )
    assert found == {
        "torch.ones(3, requires_grad=True)": "In[1]:2",
        "w * 2": "In[2]:3",
        "a * 3": "In[2]:4",
        "b * 4": "In[3]:2",
        "c * 5": "In[3]:3",
        "d * 6": "In[3]:4",
        "e.sum()": "In[4]:3",
        "loss.backward()": "In[4]:4",
    }


def test_a_program_finds_what_jupyter_gives_it(session: Session) -> None:
    folder = session.folder / "sub"
    folder.mkdir()
    (folder / "beside.py").write_text("def f(t):\n    return t.sum()\n")
    target = notebook(
        folder / "a.ipynb",
        START,
        "import sys, os, asyncio\nprint(__name__, sys.argv[1:], os.getcwd(), get_ipython())",
        "async def work():\n    return w * 3\ntask = asyncio.create_task(work())",
        "from beside import f\nloss = f(await task)\nloss",
        "%gui\ndisplay(1)\n%cd -q ..\n(Out[4] * 2).backward()",
    )
    here = Path.cwd()
    kept = {name: vars(builtins).get(name) for name in ("display", "__IPYTHON__")}
    shown = session.cli("backward", "sub/a.ipynb", "--", "3")
    assert shown.status == 0
    assert f"__main__ ['3'] {folder} <gradscope" in shown.out
    assert "Out[4]: tensor(9., grad_fn=<SumBackward0>)\n1\n" in shown.out
    report = session.look_at(target)
    assert leaf_named(report, "w")
    named = {one.expression: one.file for one in report.graph.origins}
    assert (named["t.sum()"], named["Out[4] * 2"]) == ("sub/beside.py", "In[5]")
    assert "loss = t.sum()" in shown.out  # not _4, which is the same tensor
    # And nothing of all this is left.
    assert Path.cwd() == here
    assert {name: vars(builtins).get(name) for name in kept} == kept
    assert "MPLBACKEND" not in os.environ
    assert not hasattr(sys, "ps1")
    from IPython.core.getipython import get_ipython

    assert get_ipython() is None


def test_the_users_own_ipython_is_left_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = session.folder / "home"
    startup = home / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("raise SystemError")
    (home / "profile_default" / "ipython_config.py").write_text("raise SystemError")
    monkeypatch.setenv("IPYTHONDIR", str(home))
    before = sorted(home.rglob("*"))
    done = session.cli("trace", notebook(session.folder / "a.ipynb", START, "w * 2", "%history"))
    assert (done.status, done.err) == (0, "")
    assert sorted(home.rglob("*")) == before


ENDINGS = {
    "raises": ("y / []", 1, "TypeError: unsupported operand"),
    "does not parse": ("y = = 3", 1, "SyntaxError: invalid syntax"),
    "unknown magic": ("%no_such_magic", 1, "UsageError: Line magic function `%no_such_magic`"),
    "interrupted": ("raise KeyboardInterrupt", 130, "KeyboardInterrupt:"),
    "a group": ("raise ExceptionGroup('g', [ValueError()])", 1, "ExceptionGroup: g (1 sub-exc"),
    "leaves": ("import sys\nsys.exit(7)", 7, ""),
    "leaves with words": ("raise SystemExit('bye')", 1, "bye"),
    "quits": ("exit", 0, ""),
    "quits by a call": ("quit()", 0, ""),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_how_a_notebook_ends(name: str, session: Session) -> None:
    cell, status, said = ENDINGS[name]
    target = notebook(session.folder / "a.ipynb", START, "y = (w * 2).sum()", cell, "print('on')")
    done = session.cli("trace", target)
    assert done.status == status
    assert said in done.err if said else not done.err
    assert done.err.count("Traceback") <= 1
    assert not own_words(done.err)
    assert "on\n" not in done.out
    assert "y = (w * 2).sum()" in done.out


def test_a_traceback_is_that_of_ipython(session: Session) -> None:
    cells = (START, "import torch.nn.functional as F\n\ndef f(t):\n    F.relu('a')\nf(w)")
    done = session.cli("trace", notebook(session.folder / "a.ipynb", *cells))
    assert "Cell In[2], line 5\n" in done.err
    assert "Cell In[2], line 4, in f(t)\n" in done.err
    # Neither ours, nor the detour that torch makes because we watch.
    assert not own_words(done.err)
    assert "handle_torch_function(" not in done.err.replace("return handle_torch_function(relu", "")
    assert done.err.count(", in relu(") == 1


def test_a_cell_that_may_raise_is_no_end(session: Session) -> None:
    raising = code("print('before')\n(w * 5).no_such", "raises-exception")
    done = session.cli(
        "backward", notebook(session.folder / "a.ipynb", START, raising, "(w * 2).sum().backward()")
    )
    assert done.status == 0
    assert "AttributeError: 'Tensor' object has no attribute 'no_such'" in done.err
    assert "w * 2" in done.out


@pytest.mark.parametrize(
    "cell",
    [
        "%%capture\nloss.backward()\nprint('on')",
        "try:\n    loss.backward()\nexcept BaseException:\n    raise ValueError\nprint('on')",
        code("loss.backward()\nprint('on')", "raises-exception"),
        "async def f():\n    loss.backward()\n    print('on')\nawait f()",
    ],
)
def test_the_run_stops_after_the_call_that_is_shown(
    cell: str | dict[str, Any], session: Session
) -> None:
    cells = (START, "loss = (w * 2).sum()", cell, "print('on')")
    done = session.cli("backward", notebook(session.folder / "a.ipynb", *cells))
    assert done.status == 0
    assert re.fullmatch(
        r"gradscope: stopped at backward call 1 \(In\[3\]:\d\); --run-on lets it go on\n", done.err
    )
    assert "on\n" not in done.out
    on = session.cli("backward", str(session.folder / "a.ipynb"), "--run-on")
    assert on.out.count("on\n") == (2 if "%%" not in str(cell) else 1)


WRONG: dict[str, tuple[object, str, str]] = {
    "empty file": (b"", "not a notebook of nbformat 4: Expecting value", "as Jupyter saves it"),
    "a script": (b"import torch\n", "not a notebook of nbformat 4: Expecting value", "Jupyter"),
    "binary": (b"\x00\xff\xfe", "not a notebook of nbformat 4", "Jupyter"),
    "deep": (b"[" * 100_000, "not a notebook of nbformat 4: maximum recursion", "Jupyter"),
    "other JSON": (b"[1]", "not a notebook of nbformat 4: Expected `object`", "Jupyter"),
    "too old": ({"nbformat": 3}, "Invalid enum value 3", "jupyter nbconvert --to"),
    "odd cells": ({"cells": 3}, "Expected `array`, got `int` - at `$.cells`", "Jup"),
    "no cells": ({"cells": []}, "has no cell of code to run", "that computes something"),
    "only text": ({"cells": [text("x"), code("\n")]}, "has no cell of code to run", "computes"),
    "skipped": ({"cells": [code("1", "skip-execution")]}, "has no cell of code to run: ", "comp"),
    "of R": ({"metadata": {"kernelspec": {"language": "R"}}}, "a notebook of R, not of", "Python"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_notebook_is_refused_in_two_lines(name: str, session: Session) -> None:
    content, what, hint = WRONG[name]
    path = session.folder / "a.ipynb"
    if isinstance(content, dict):
        notebook(path, START, **content)
    else:
        assert isinstance(content, bytes)
        path.write_bytes(content)
    done = session.cli("doctor", "a.ipynb")
    assert (done.status, done.out) == (2, "")
    first, second = done.err.splitlines()
    assert first.startswith(f"gradscope: a.ipynb {'is ' if 'has' not in what else ''}")
    assert what in first
    assert hint in second


def test_a_missing_notebook_and_a_function_of_one(session: Session) -> None:
    notebook(session.folder / "train.ipynb", START)
    missing = session.cli("trace", "trian.ipynb")
    assert missing.err.endswith("gradscope: did you mean train.ipynb?\n")
    function = session.cli("trace", "train.ipynb::f")
    assert function.status == missing.status == 2
    assert "names a function of a notebook; only those of scripts are called" in function.err


def test_without_ipython_the_extra_is_named(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    done = session.cli("trace", notebook(session.folder / "a.ipynb", START))
    assert (done.status, done.out) == (3, "")
    what, hint = done.err.splitlines()
    assert "IPython, which is not installed" in what
    assert hint == "gradscope: install it: pip install 'gradscope-torch[notebook]'"
    # Its file is read first: what is wrong with that does not depend on what is installed.
    assert session.cli("trace", notebook(session.folder / "a.ipynb")).status == 2


SICK = "def f(t):\n    return t.detach() * v\nv = torch.ones(3, requires_grad=True)\nl = f(w * 2)"


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (["trace"], 0, "In[2]:2"),
        (["explain"], 0, "In[2]:2"),
        (["check"], 0, "In[2]:2"),
        (["memory"], 0, "In[2]:2"),
        (["doctor"], 1, "GS303 history-cut · warning · In[2]:2 · t.detach()"),
    ],
)
def test_every_command_takes_a_notebook(
    command: list[str], status: int, said: str, session: Session
) -> None:
    notebook(session.folder / "a.ipynb", START, SICK, "!echo said\nl.sum().backward()")
    done = session.cli(*command, "a.ipynb")
    assert done.status == status
    assert said in done.out
    assert "said\n" in done.out.replace("\r", "")
    again = session.cli(*command)
    assert (again.status, again.out) == (done.status, done.out)
    assert again.err.startswith("gradscope: running a.ipynb again\n")


@pytest.mark.parametrize(
    ("command", "begins"),
    [
        (["doctor", "--format", "github"], "::warning title=GS303 history-cut · In[2]%3A2::"),
        (["backward", "--format", "json"], '{"format":"gradscope/1"'),
    ],
)
def test_what_a_notebook_prints_stays_out_of_machine_formats(
    command: list[str], begins: str, process: Session
) -> None:
    cells = (START, SICK, "!echo said\nl.sum().backward()", "print('on')\nl")
    done = process.cli(*command, notebook(process.folder / "a.ipynb", *cells))
    assert done.out.startswith(begins)
    assert len(done.out.splitlines()) == 1
    assert "said\n" in done.err.replace("\r", "")
