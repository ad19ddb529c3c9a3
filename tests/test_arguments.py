"""Which words of a command line go to the program, and what is said of that."""

from __future__ import annotations

import shlex

import pytest

from tests.looking import Session

TELLS = "import sys\nimport torch\nprint(sys.argv[1:])\n"
PROGRAMS = {"plain.py": "import torch\n", "train.py": TELLS, "by name.py": TELLS}
GOES = "(whatever follows -- goes to the program)"


@pytest.fixture
def programs(session: Session) -> Session:
    """A user with programs that tell what they are given."""
    for name, text in PROGRAMS.items():
        (session.folder / name).write_text(text)
    return session


@pytest.mark.parametrize(
    ("typed", "passed"),
    [
        ("train.py --lr 0.1 --epochs 2 --depth 1", "--lr 0.1 --epochs 2"),
        ("train.py --depth 1 --lr=-0.1 -v", "--lr=-0.1 -v"),
        ("--depth 1 train.py data --all more", "data more"),
        ("train.py -lr 0.1 --out 5 --width=80", "-lr 0.1 --out 5"),
        ("'by name.py' --lr 3", "--lr 3"),
        ("train.py --lr 1 -- --depth 2", "--lr 1"),
        (f"-c {shlex.quote(TELLS)} --lr 1 two", "--lr 1 two"),
    ],
)
def test_what_is_not_ours_goes_to_the_program(typed: str, passed: str, programs: Session) -> None:
    done = programs.cli("trace", *shlex.split(typed))
    name = shlex.join(shlex.split(typed.removeprefix("--depth 1 "))[:1]).replace(
        "-c", "the program"
    )
    assert done.err.startswith(f"gradscope: arguments for {name}: {passed} {GOES}\n")
    last = shlex.split(typed.partition(" -- ")[2])
    assert done.out == f"{[*shlex.split(passed), *last]}\n"
    assert done.status == 0
    again = programs.cli("trace")
    assert again.out == done.out


OWN = "arguments for your own program go after `--`: gradscope "


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            "backward train.py --graident ones --all",
            f"Did you mean '--gradient'?\ngradscope: {OWN}backward … -- --graident\n",
        ),
        (
            "trace train.py --stesp 3",
            "--steps is an option of gradscope backward and gradscope doctor\n"
            f"gradscope: {OWN}trace … -- --stesp\n",
        ),
        (
            "trace train.py --gradient ones",
            "gradscope: --gradient is an option of gradscope backward, gradscope explain, "
            f"gradscope check and gradscope diff\ngradscope: {OWN}trace … -- --gradient\n",
        ),
        ("trace --lr 1 -o x.svg train.py", f"gradscope: {OWN}trace … -- --lr\n"),
        ("doctor --lr=1 -q", f"gradscope: {OWN}doctor … -- --lr=1\n"),
        ("trace plain.py -c code", "two programs given at once"),
        ("doctor a.json --lr 1", f"gradscope: {OWN}doctor … -- --lr\n"),
        ("doctor a.json more", "unexpected extra argument (more)"),
        ("diff train.py b.py --lr 1", f"gradscope: {OWN}diff … -- --lr\n"),
        ("diff 'train.py --graident 1' train.py", f"gradscope: {OWN}backward … -- --graident\n"),
    ],
)
def test_a_slip_is_told_before_the_program_runs(typed: str, said: str, programs: Session) -> None:
    done = programs.cli(*shlex.split(typed))
    assert (done.status, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("typed", "is_refused"),
    [
        *(("own.py --seed 3 --lr 1", False), ("own.py::f --seed=3", False)),
        *(("--seed 3 own.py", False), ("own.py -q --seed many", True), ("--seed x own.py", True)),
    ],
)
def test_an_option_that_both_have_is_told_where_the_programs_is_meant(
    typed: str, is_refused: bool, session: Session
) -> None:
    (session.folder / "own.py").write_text(
        "import torch, argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--seed', type=int), '-q'\n"
        "def f():\n    return torch.ones(1, requires_grad=True) * 2\n"
    )
    done = session.cli("trace", *shlex.split(typed))
    told = "gradscope: --seed is read by gradscope, though own.py"
    both = "names it, too; for the program it goes after --\n"
    assert done.err.count(told) == done.err.count(both) == (not typed.startswith("--seed"))
    assert not is_refused or done.status == 2
    assert "-q is read" not in done.err
