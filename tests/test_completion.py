"""Tab in a shell, through the protocol of click and the command itself; and options mistyped."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.fuzz.process import ran
from tests.looking import Session

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "getting-started.md").read_text("utf-8")
COMMAND = (
    "import sys; sys.modules['torch'] = None\n"
    "from gradscope.cli import entry\nsys.argv = ['gradscope']\nentry()"
)
"""The command in a python that has no torch."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with saved reports, and the command on its own path."""
    (tmp_path / "runs").mkdir()
    for name in ("a.json", "b.json.gz", "notes.txt", "runs/c.json", "runs/d.py"):
        (tmp_path / name).touch()
    script = tmp_path / "bin" / "gradscope"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{COMMAND}"\n')
    script.chmod(0o755)
    return tmp_path


def _environment(folder: Path) -> dict[str, str]:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(folder)}


OFFERED = {
    "gradscope doc": ["plain,doctor"],
    "gradscope doctor --form": ["plain,--format"],
    "gradscope doctor --format gi": ["plain,github"],
    # The shell lists files itself, and goes into folders.
    "gradscope show ru": ["file,ru"],
    "gradscope diff a.json runs/": ["file,runs/"],
    "gradscope trace no": ["file,no"],
    "gradscope trace -o p": ["file,p"],
}
"""What is on the line when Tab is pressed, and what the shell is told."""

PRESSED = """
import contextlib, io, json, os, sys
sys.modules["torch"] = None
sys.argv = ["gradscope"]
from gradscope.cli import entry
os.environ["_GRADSCOPE_COMPLETE"] = "bash_complete"
told = {}
for line in json.load(sys.stdin):
    os.environ.update(COMP_WORDS=line, COMP_CWORD=str(line.count(" ")))
    out = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        entry()
    told[line] = out.buffer.getvalue().decode().splitlines()
print(json.dumps(told))
"""
"""All of it in one process, which has no torch."""


def test_what_is_offered(folder: Path) -> None:
    command = [sys.executable, "-c", PRESSED]
    done = ran(command, folder, _environment(folder), json.dumps([*OFFERED]))
    assert json.loads(done.stdout) == OFFERED, done.stderr


def test_the_documented_line_installs_it_in_bash(folder: Path) -> None:
    (line,) = re.findall(r"^echo .*bashrc$", GUIDE, re.MULTILINE)
    press = (
        "COMP_WORDS=(gradscope doc); COMP_CWORD=1; "
        'completing=$(complete -p gradscope | sed -E "s/.* -F ([^ ]+) .*/\\1/"); '
        '"$completing" gradscope; echo "${COMPREPLY[@]}"'
    )
    run = f"{line}\nsource ~/.bashrc\n{press}"
    done = ran(["bash", "--norc", "-c", run], folder, _environment(folder))
    assert (done.stdout, done.stderr) == ("doctor\n", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_documented_line_asks_for_the_script_of_the_shell(shell: str, folder: Path) -> None:
    (name,) = re.findall(rf"(\w+)={shell}_source gradscope\b", GUIDE)
    asked = {**_environment(folder), name: f"{shell}_source"}
    done = ran([str(folder / "bin" / "gradscope")], known=asked)
    assert f"{name}={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trace", "--dept", "2"], "Did you mean '--depth'?"),
        (
            ["trace", "--gradient", "ones"],
            "gradscope: --gradient is an option of gradscope backward, gradscope explain, "
            "gradscope check and gradscope diff\n",
        ),
        (["explain", "--thorogh"], "gradscope: --thorough is an option of gradscope doctor\n"),
        (["docter"], "Did you mean 'doctor'?"),
        (["trace", "--lr", "1"], "program go after `--`: gradscope trace … -- --lr"),
    ],
)
def test_a_mistyped_option(words: list[str], said: str, session: Session) -> None:
    done = session.cli(*words)
    assert done.status == 2
    assert said in re.sub(r"\(Did you mean one of: ('--depth')", r"Did you mean \1?", done.err)
